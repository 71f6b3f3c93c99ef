"""Measure this checkout beside another checkout: load, queries, pairs, clusters, SQL, inserts.

    git worktree add /tmp/older COMMIT
    python -m benchmarks.against /tmp/older [--documents 200000] [--rounds 3] [--words 50,200]

Each side has its own process, embedded server and data directory. The sides take turns at every step,
and the first side changes from round to round. A round measures short operations in four blocks, also
in turns. A figure is the median of the rounds; a ratio is the median of the ratios within a round.

All corpora have as many words as --documents of 200 words, so longer documents are fewer; --fixed keeps
the number of documents. Inserts into tables do not wait for the disk; all other writes do.

The steps use only the public interface that both checkouts have. Both sides use the current Python;
--python names another Python for the other side.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.generate import documents
from benchmarks.record import FOLDER, Table, add_option, commit, record, shown

Figures = dict[str, float]
ROOT = Path(__file__).resolve().parents[1]
SIDE = Path(__file__).with_name("against_side.py")
TYPICAL_WORDS = 200
BLOCKS = 4
STEPS = {
    "load": 1,
    "query": BLOCKS,
    "batches": 1,
    "pairs": 1,
    "clusters": 1,
    "sql_match": BLOCKS,
    "sql_none": BLOCKS,
    "add": BLOCKS,
    "insert": BLOCKS,
    "drop": 1,
}
FASTER, SHORTER, SMALLER, EQUAL = "faster", "shorter", "smaller", "equal"
MEASURES = {
    "rate": ("load, documents/s", FASTER),
    "processor_us": ("load, processor us a document", SHORTER),
    "client_us": ("    of the client", SHORTER),
    "server_us": ("    of the server", SHORTER),
    "peak_mb": ("client after the load, peak MB", SMALLER),
    "bytes": ("stored, bytes a document", SMALLER),
    "query_ms": ("one query, median ms", SHORTER),
    "p99_ms": ("    p99 ms", SHORTER),
    "batch_rate": ("query_many, queries/s", FASTER),
    "pairs_s": ("all pairs, s", SHORTER),
    "pairs": ("    pairs", EQUAL),
    "clusters_s": ("all clusters, s", SHORTER),
    "clusters": ("    clusters", EQUAL),
    "sql_match_ms": ("matches() with a match, ms", SHORTER),
    "sql_none_ms": ("matches() without a candidate, ms", SHORTER),
    "add_ms": ("add(), one document, ms", SHORTER),
    "plain_ms": ("insert without the disk, plain table, ms", SHORTER),
    "inline_ms": ("insert without the disk, inline, ms", SHORTER),
    "over_plain_ms": ("    on top of the plain one, ms", SHORTER),
}


@dataclass(frozen=True)
class Checkout:
    """A checkout, the Python that runs it, and the folder of its server."""

    path: Path
    python: str
    data: Path

    def environment(self) -> dict[str, str]:
        """Return the environment of a process that imports this checkout."""
        inherited = {n: v for n, v in os.environ.items() if not n.startswith("TEXTSIM_")}
        return inherited | {"PYTHONPATH": str(self.path), "TEXTSIM_DATA_DIR": str(self.data)}

    def stop_server(self) -> None:
        """Stop the server of the folder."""
        command = [self.python, "-P", "-m", "textsim_db.cli", "db", "stop"]
        subprocess.run(command, env=self.environment(), check=True, capture_output=True)


class Side:
    """A process that runs steps."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, step: str, block: int) -> Figures:
        """Run a block of a step and return its figures."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{step} {block}\n")
            self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"step {step} failed: {self._process.args!r}")
        figures: Figures = json.loads(answer)
        return figures


@contextmanager
def side_of(checkout: Checkout, folder: Path) -> Iterator[Side]:
    """Start the process of a side, and end it."""
    with subprocess.Popen(
        [checkout.python, "-P", str(SIDE), str(folder)],
        env=checkout.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Side(process)


def write_texts(folder: Path, count: int, words: int) -> None:
    """Write documents, one a line, and the texts of the queries."""
    folder.mkdir()
    asked = max(100, min(1000, 1000 * TYPICAL_WORDS // words))
    step = max(1, count // asked)
    indexed = []
    with (folder / "documents.tsv").open("w", encoding="utf-8") as file:
        for number, (key, text) in enumerate(documents(count, words)):
            file.write(f"{key}\t{text}\n")
            if number % step == 0:
                indexed.append(text)
    # Shuffle the words of a document: the dictionary has all of them, but no document is similar.
    generator = random.Random(1)
    unlike = [
        " ".join(generator.sample(split, len(split))) for split in (t.split() for t in indexed)
    ]
    (folder / "texts.json").write_text(
        json.dumps({"indexed": indexed, "unlike": unlike, "blocks": BLOCKS})
    )


def compare(sides: list[Checkout], folder: Path, rounds: int) -> list[tuple[Figures, Figures]]:
    """Return the figures of both sides in each round."""
    results = []
    for number in range(rounds):
        figures: tuple[Figures, Figures] = ({}, {})
        with ExitStack() as stack:
            running = [stack.enter_context(side_of(checkout, folder)) for checkout in sides]
            for step, blocks in STEPS.items():
                measured: tuple[list[Figures], list[Figures]] = ([], [])
                for block in range(blocks):
                    for which in (0, 1) if (number + block) % 2 == 0 else (1, 0):
                        measured[which].append(running[which].run(step, block))
                for which in (0, 1):
                    figures[which].update(medians(measured[which]))
        results.append(figures)
        print(f"round {number + 1} of {rounds} done", file=sys.stderr, flush=True)
    return results


def medians(blocks: list[Figures]) -> Figures:
    """Return the medians of several blocks."""
    return {name: statistics.median(block[name] for block in blocks) for name in blocks[0]}


def ratio(name: str, this: float, other: float) -> float:
    """Return how many times as fast this checkout is.

    For memory and bytes, return the value of this checkout divided by the value of the other checkout.
    """
    return other / this if MEASURES[name][1] == SHORTER else this / other


def table(rounds: list[tuple[Figures, Figures]], title: str) -> str:
    """Return the figures as Markdown."""
    lines = [f"| {title} | this | other | |", "|---|---|---|---|"]
    for name, (label, kind) in MEASURES.items():
        this, other = ([figures[which][name] for figures in rounds] for which in (0, 1))
        ratios = [ratio(name, *values) for values in zip(this, other, strict=True)]
        sentence = "" if kind == EQUAL else f"{statistics.median(ratios):.2f} "
        if kind in (FASTER, SHORTER):
            sentence += "times as fast"
        elif kind == SMALLER:
            sentence += "of it"
        if sentence and len(ratios) > 1:
            sentence += f" ({min(ratios):.2f} to {max(ratios):.2f})"
        cells = (shown(statistics.median(values)) for values in (this, other))
        lines.append(f"| {label.replace('    ', '&emsp;')} | {' | '.join(cells)} | {sentence} |")
    return "\n".join(lines) + "\n"


def summary(rounds: list[tuple[Figures, Figures]], count: int, words: int) -> dict[str, Any]:
    """Return the medians of this checkout, and of the ratios: `times` as fast, or the share left."""
    medians_of_this = {name: statistics.median(r[0][name] for r in rounds) for name in MEASURES}
    times = {
        name: statistics.median(ratio(name, this[name], other[name]) for this, other in rounds)
        for name in MEASURES
    }
    return {"documents": count, "words": words, **medians_of_this, "times": times}


def sizes_table(sizes: dict[str, Any]) -> Table:
    """Return a table with a column for each size: a median and its ratio to the other checkout."""
    columns = sorted(sizes.values(), key=lambda size: (size["documents"] > 200_000, size["words"]))
    rows = [["", *(f"{c['documents']:,} of {c['words']:,} words" for c in columns)]]
    for name, (label, kind) in MEASURES.items():
        if kind != EQUAL:
            cells = [f"{shown(c[name])}, {c['times'][name]:.2f}" for c in columns]
            rows.append([label.replace("    ", "&emsp;"), *cells])
    return rows


def record_sizes(sizes: dict[str, Any], other: str) -> None:
    """Record sizes, beside those that an earlier run recorded on the same two commits."""
    path = FOLDER / "against.json"
    if path.exists():
        recorded = json.loads(path.read_text("utf-8"))
        if recorded["measured"]["commit"] == commit(ROOT) and recorded["figures"]["other"] == other:
            del recorded["figures"]["other"]
            sizes = recorded["figures"] | sizes
    record("against", {**sizes, "other": other}, {"against": sizes_table(sizes)})


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("other", type=Path, help="a checkout of another commit")
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--words", default="50,200,1000,5000", help="words in a document")
    parser.add_argument(
        "--fixed", action="store_true", help="same number of documents at any length"
    )
    parser.add_argument("--python", default=sys.executable, help="Python of the other side")
    parser.add_argument("--folder", type=Path, help="new folder for the servers' files")
    parser.add_argument("--output", type=Path, help="also append the tables to this file")
    add_option(parser)
    given = parser.parse_args()
    other = given.other.resolve()
    if given.folder:
        given.folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="against-", dir=given.folder) as name:
        folder = Path(name)
        sides = [
            Checkout(ROOT, sys.executable, folder / "this"),
            Checkout(other, given.python, folder / "other"),
        ]
        sizes = {}
        try:
            for words in map(int, given.words.split(",")):
                count = given.documents
                if not given.fixed:
                    count = min(count, count * TYPICAL_WORDS // words)
                texts = folder / f"words-{words}"
                write_texts(texts, count, words)
                title = f"{count:,} documents of {words:,} words, {given.rounds} rounds"
                rounds = compare(sides, texts, given.rounds)
                sizes[f"d{count}_w{words}"] = summary(rounds, count, words)
                report = table(rounds, title)
                report = f"{commit(ROOT)} beside {commit(other)}\n\n{report}"
                print(report, flush=True)
                if given.output:
                    with given.output.open("a", encoding="utf-8") as file:
                        file.write(report + "\n")
            if given.record:
                record_sizes(sizes, commit(other))
        finally:
            for checkout in sides:
                checkout.stop_server()


if __name__ == "__main__":
    main()
