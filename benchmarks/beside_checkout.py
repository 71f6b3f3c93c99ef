"""Measure this checkout beside another checkout: load, queries, pairs, clusters, SQL, inserts.

    git worktree add /tmp/older COMMIT
    python -m benchmarks.beside_checkout /tmp/older [--documents 200000] [--rounds 3] [--words 50,200]

Each side has its own process, embedded server and data directory. The sides take turns at every step,
and the first side changes from round to round. A round measures short operations in four blocks, also
in turns. A figure is the median of the rounds, and a ratio is the ratio of two medians.

All corpora have as many words as --documents of 200 words, so longer documents are fewer; --fixed keeps
the number of documents. Inserts into tables do not wait for the disk; all other writes do.

Both sides run the steps of this checkout, and use the current Python; --python names another Python for
the other side.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.corpus_steps import LABELS, Measured, Side, measure, read_texts, write_texts
from benchmarks.generate import documents
from benchmarks.harness import (
    ROOT,
    Figures,
    Table,
    commit,
    fresh_database,
    medians,
    options,
    publish,
    recorded,
    shown,
)

TYPICAL_WORDS = 200
RATES, SIZES = ("rate", "batch_rate"), ("peak_mb", "bytes")
COUNTS = ("pairs", "clusters")
MEASURES = {name: label for name, label in LABELS.items() if name != "load_s"}


@dataclass(frozen=True)
class Checkout:
    """A checkout, the Python that runs it, and the folder of its server and its view."""

    path: Path
    python: str
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a process with the package of the checkout, and these benchmarks."""
        view = self.folder / "view"
        if not view.exists():
            view.mkdir(parents=True)
            (view / "textsim_db").symlink_to(self.path / "textsim_db")
            (view / "benchmarks").symlink_to(ROOT / "benchmarks")
        inherited = {n: v for n, v in os.environ.items() if not n.startswith("TEXTSIM_")}
        data = {"TEXTSIM_DATA_DIR": str(self.folder / "data")}
        return inherited | {"PYTHONPATH": str(view)} | data

    @contextmanager
    def side(self, texts: Path) -> Iterator[Side]:
        """Start a process that runs steps, and end it."""
        module = [self.python, "-P", "-m", "benchmarks.beside_checkout"]
        with subprocess.Popen(
            [*module, str(self.path), "--side", str(texts)],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            asked, answers = process.stdin, process.stdout

            def run(step: str, block: int) -> Figures:
                print(step, block, file=asked, flush=True)
                if not (answer := answers.readline()):
                    raise SystemExit(f"step {step} of {self.path} failed")
                figures: Figures = json.loads(answer)
                return figures

            yield run
            asked.close()

    def stop_server(self) -> None:
        """Stop the server of the folder."""
        command = [self.python, "-P", "-m", "textsim_db.cli", "db", "stop"]
        subprocess.run(command, env=self.environment, check=True, capture_output=True)


def answer_steps(folder: Path) -> None:
    """Run the steps that the input names, and answer each with its figures as a line of JSON."""
    answers, sys.stdout = sys.stdout, sys.stderr
    with fresh_database() as bench:
        measured = Measured(bench, read_texts(folder))
        for line in sys.stdin:
            step, block = line.split()
            print(json.dumps(measured(step, int(block))), file=answers, flush=True)


def compare(checkouts: list[Checkout], texts: Path, rounds: int) -> tuple[Figures, Figures]:
    """Return the medians of both sides."""
    results: dict[str, list[Figures]] = {"this": [], "other": []}
    for number in range(rounds):
        with ExitStack() as stack:
            running = [stack.enter_context(checkout.side(texts)) for checkout in checkouts]
            figures = measure(dict(zip(results, running, strict=True)), first=number)
        for name, of_side in figures.items():
            results[name].append(of_side)
        print(f"round {number + 1} of {rounds} done", file=sys.stderr, flush=True)
    return medians(results["this"]), medians(results["other"])


def ratio(name: str, this: float, other: float) -> float:
    """Return how many times as fast this checkout is.

    For memory, bytes and counts, return the value of this checkout divided by that of the other one.
    """
    return this / other if name in (*RATES, *SIZES, *COUNTS) else other / this


def table(this: Figures, other: Figures, title: str) -> Table:
    """Return the figures of both sides, and their ratios."""
    rows = [[title, "this", "other", "times as fast, or the share of the size"]]
    for name, label in MEASURES.items():
        cells = shown(this[name]), shown(other[name]), f"{ratio(name, this[name], other[name]):.2f}"
        rows.append([label, *cells])
    return rows


def sizes_table(sizes: dict[str, Any]) -> Table:
    """Return a table with a column for each size: a median and its ratio to the other checkout."""
    columns = sorted(sizes.values(), key=lambda size: (size["documents"] > 200_000, size["words"]))
    rows = [["", *(f"{c['documents']:,} of {c['words']:,} words" for c in columns)]]
    for name, label in MEASURES.items():
        if name not in COUNTS:
            cells = [f"{shown(c[name])}, {c['times'][name]:.2f}" for c in columns]
            rows.append([label, *cells])
    return rows


def add_recorded(sizes: Figures, other: str) -> Figures:
    """Add the sizes that an earlier run recorded, if it measured the same two commits."""
    earlier = recorded("against")
    if earlier.pop("other", None) != other or earlier.pop("this", None) != commit(ROOT):
        return sizes
    return earlier | sizes


def arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = options(__doc__, documents=200_000, rounds=3)
    parser.add_argument("other", type=Path, help="a checkout of another commit")
    parser.add_argument("--words", default="50,200,1000,5000", help="words in a document")
    parser.add_argument(
        "--fixed", action="store_true", help="same number of documents at any length"
    )
    parser.add_argument("--python", default=sys.executable, help="Python of the other side")
    parser.add_argument("--folder", type=Path, help="folder for the servers' files")
    parser.add_argument("--side", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Measure each size, and print its table."""
    given = arguments()
    if given.side:
        answer_steps(given.side)
        return
    other, sizes = given.other.resolve(), {}
    with (
        tempfile.TemporaryDirectory(prefix="beside-", dir=given.folder) as name,
        ExitStack() as ends,
    ):
        folder = Path(name)
        checkouts = [
            Checkout(ROOT, sys.executable, folder / "this"),
            Checkout(other, given.python, folder / "other"),
        ]
        for checkout in checkouts:
            ends.callback(checkout.stop_server)
        for words in map(int, given.words.split(",")):
            count = given.documents
            if not given.fixed:
                count = min(count, count * TYPICAL_WORDS // words)
            queries = max(100, min(1000, 1000 * TYPICAL_WORDS // words))
            texts = folder / f"words-{words}"
            write_texts(texts, documents(count, words), count, queries)
            this, that = compare(checkouts, texts, given.rounds)
            times = {name: ratio(name, this[name], that[name]) for name in MEASURES}
            sizes[f"d{count}_w{words}"] = {
                **this,
                "documents": count,
                "words": words,
                "times": times,
            }
            title = f"{commit(ROOT)} beside {commit(other)}, {count:,} documents of {words:,} words"
            publish(False, "", {}, {"": table(this, that, title)})
    if given.record:
        sizes = add_recorded(sizes, commit(other))
        figures = {**sizes, "this": commit(ROOT), "other": commit(other)}
        publish(True, "against", figures, {"against": sizes_table(sizes)})


if __name__ == "__main__":
    main()
