"""The time to leave out of new records what a corpus has, and what came before in the file.

    python -m benchmarks.dedupe_against [--documents 1000000] [--new 10000] [--record]

A tenth of the new records are copies of documents of the corpus, with a word changed in each. The
command runs once to warm up, and three times more. The figure is the median, from the start of its
process to its end.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.generate import documents
from benchmarks.harness import fresh_database, options, publish


def write_new(path: Path, count: int) -> None:
    """Write the new records: of every ten, nine are new and one is a changed copy."""
    known = (text.split() for _, text in documents(count, seed=1))
    unknown = documents(count, seed=2)
    with path.open("w", encoding="utf-8") as file:
        for number, (words, (_, text)) in enumerate(zip(known, unknown, strict=True)):
            words[len(words) // 2] = "changed"
            chosen = text if number % 10 else " ".join(words)
            file.write(json.dumps({"id": number, "text": chosen}) + "\n")


def main() -> None:
    """Measure the command, and print the table."""
    parser = options(__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000, help="documents of the corpus")
    parser.add_argument("--new", type=int, default=10_000, help="records of the file")
    given = parser.parse_args()
    with fresh_database() as bench, tempfile.TemporaryDirectory() as folder:
        bench.db.create_corpus("old").add_many(documents(given.documents, seed=1))
        new, out = Path(folder, "new.jsonl"), Path(folder, "out.jsonl")
        write_new(new, given.new)
        command = [
            str(Path(sys.executable).with_name("textsim")),
            "dedupe",
            str(new),
            "-o",
            str(out),
        ]
        command += ["--against", "old", "--database-url", bench.db.url]
        seconds = []
        for _ in range(4):
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            seconds.append(time.perf_counter() - start)
        kept = len(out.read_text("utf-8").splitlines())
    median = statistics.median(seconds[1:])
    print(f"{kept:,} kept; first run {seconds[0]:.2f} s, median of three more {median:.2f} s")
    publish(given.record, "dedupe_against", {"seconds": median}, {})


if __name__ == "__main__":
    main()
