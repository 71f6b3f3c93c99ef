"""Measure whole processes: commands of the shell on a small corpus, from their start to their end.

    python -m benchmarks.processes [--rounds 5]

Sets up a corpus of 1,000 documents. The figures of a command are the processor time and the peak memory
of its process, the medians of some rounds. The first row imports the driver and SQLAlchemy and does
nothing else: no command that reads a database is faster.
"""

from __future__ import annotations

import json
import os
import shlex
import statistics
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import generate
from benchmarks.harness import ROOT, fresh_database, options, publish

IMPORTS = "import psycopg, sqlalchemy"
COMMANDS = (
    *("--version", "--help", "status", "corpus list", "query news {text}", "neighbours news {key}"),
    *("members news {key}", "judge news {key} {other} same", "remove news unknown"),
    *(
        "compare {key} {other} --corpus news",
        "pairs news",
        "check news",
        "dedupe {file} -o {file}.out",
    ),
)

RUNNER = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
"""
"""Runs the command. The peak of a process counts the memory of its parent, so this one is small."""


def spent(words: list[str], url: str) -> tuple[float, float]:
    """Run Python, and return the seconds of the processor and the peak memory in MB."""
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, sys.executable, *words],
        cwd=ROOT,
        env={**os.environ, "TEXTSIM_DATABASE_URL": url},
        stdout=subprocess.PIPE,
        check=True,
    )
    status, seconds, memory = done.stdout.split()
    assert int(status) in (0, 2), words  # 2: no document has the key
    return float(seconds), float(memory)


def main() -> None:
    """Measure each command, and print a table."""
    given = options(__doc__, rounds=5).parse_args()
    documents = [*generate.documents(1000, seed=1)]
    table = [["command", "processor, s", "peak, MB"]]
    values = {"{key}": documents[7][0], "{other}": documents[8][0], "{text}": documents[7][1]}
    with TemporaryDirectory() as folder, fresh_database() as bench:
        file = Path(folder, "news.jsonl")
        records = (json.dumps({"id": key, "text": text}) for key, text in documents)
        file.write_text("\n".join(records), encoding="utf-8")
        corpus = bench.db.create_corpus("news")
        corpus.add_many(documents)
        corpus.track()
        for command in (IMPORTS, *COMMANDS):
            arguments = [values.get(word, word) for word in command.split()]
            arguments = [word.replace("{file}", str(file)) for word in arguments]
            words = ["-c", IMPORTS] if command == IMPORTS else ["-m", "textsim_db.cli", *arguments]
            spent(words, bench.db.url)  # the first process reads the files from the disk
            rounds = [spent(words, bench.db.url) for _ in range(given.rounds)]
            seconds, memory = (statistics.median(column) for column in zip(*rounds, strict=True))
            shown = shlex.quote(command) if command == IMPORTS else f"textsim {command}"
            name = f"python -c {shown}" if command == IMPORTS else shown
            table.append([f"`{name}`", f"{seconds:.2f}", f"{memory:.0f}"])
    publish(given.record, "processes", {}, {"processes": table})


if __name__ == "__main__":
    main()
