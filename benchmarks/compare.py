"""The project and its peers on the same documents, in one run: a table and a plot.

    python -m benchmarks.compare [--documents 20000] [--corpora FOLDER] [--only datasketch,rensa]

Each contender runs in its own process. Contenders take turns in each round, and figures are medians of
the rounds. Slow contenders get fewer documents (--slow-documents). Without --database-url the embedded
PostgreSQL is used.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import textsim_db as ts
from benchmarks.contenders import CONTENDERS, THRESHOLD, Documents
from benchmarks.generate import documents as generated
from benchmarks.record import Table, add_option, identifier, record
from benchmarks.record import shown as rounded
from benchmarks.truth import truth

Figures = dict[str, Any]
OURS = "textsim-db"
COLUMNS = ("rate", "peak", "bytes", "median", "p99", "together", "recall", "precision")


def arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--words", type=int, default=200)
    parser.add_argument("--slow-documents", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--corpora", type=Path, help="a folder of gzip'ed JSON lines: id, text")
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--slow-queries", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(CONTENDERS))
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--database-url")
    add_option(parser)
    return parser.parse_args()


def workloads(given: argparse.Namespace) -> Iterator[tuple[str, Documents]]:
    """Yield the generated documents, or the documents of each file of the folder."""
    if given.corpora is None:
        made = generated(given.documents, given.words, 0.2, given.seed, moved=0.1)
        yield f"generated, {given.words} words", list(made)
        return
    for path in sorted(given.corpora.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        texts = {f"{i}": record["text"] for i, record in enumerate(records)}
        yield path.name.removesuffix(".jsonl.gz"), list(texts.items())[: given.documents]


def run(name: str, folder: Path, limit: int, queries: int) -> Figures:
    """Run one contender in its own process."""
    command = [sys.executable, "-m", "benchmarks.contenders", name, str(folder)]
    done = subprocess.run(
        [*command, str(limit), str(queries)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return {"missing": done.stderr.strip().splitlines()[-1]}
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def score(figures: Figures, expected: dict[str, set[str]]) -> None:
    """Add recall and precision over the pairs of the queried documents."""
    found = {key: set(keys) - {key} for key, keys in figures.pop("found").items()}
    pairs = sum(len(expected[key]) for key in found)
    hits = sum(len(found[key] & expected[key]) for key in found)
    reported = sum(map(len, found.values()))
    figures["pairs"] = pairs
    figures["recall"] = hits / pairs if pairs else None
    figures["precision"] = hits / reported if reported else None


def compare(given: argparse.Namespace, documents: Documents) -> dict[str, Figures]:
    """Return the medians of each contender for these documents."""
    names = given.only.split(",")
    asked = [key for key, _ in documents]
    slow = min(given.slow_documents, len(documents))
    random.Random(given.seed).shuffle(asked)
    few = {key for key, _ in documents[:slow]}
    # The documents that every contender indexes come first.
    asked = sorted(asked, key=lambda key: key not in few)[: given.queries]
    rounds: dict[str, list[Figures]] = {name: [] for name in names}
    expected = {
        limit: truth(
            documents[:limit], [key for key in asked if limit > slow or key in few], THRESHOLD
        )
        for limit in {slow, len(documents)}
    }
    with tempfile.TemporaryDirectory() as folder:
        with Path(folder, "documents").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(document) + "\n" for document in documents)
        Path(folder, "queries").write_text(json.dumps(asked))
        for number in range(given.rounds):
            for name in names:
                is_slow = CONTENDERS[name].slow
                limit = slow if is_slow else len(documents)
                queries = given.slow_queries if is_slow else given.queries
                figures = run(name, Path(folder), limit, queries)
                if "missing" not in figures:
                    score(figures, expected[limit])
                rounds[name].append(figures)
                print(f"round {number + 1}, {name}: {shown(figures)}", file=sys.stderr)
    results = {name: medians(some) for name, some in rounds.items()}
    for name, figures in results.items():
        figures["times_as_fast"] = times_as_fast(rounds.get(OURS, []), rounds[name])
    return results


def times_as_fast(ours: list[Figures], theirs: list[Figures]) -> float | None:
    """Return the median of our rate divided by theirs in the same round; None if documents differ."""
    ratios = [
        our["rate"] / their["rate"]
        for our, their in zip(
            ours, theirs, strict=False
        )  # the list of ours is empty if --only leaves it out
        if "missing" not in their and our.get("documents") == their["documents"]
    ]
    return statistics.median(ratios) if ratios else None


def medians(rounds: list[Figures]) -> Figures:
    """Return the medians of several runs."""
    for figures in rounds:
        if "missing" in figures:
            return figures
    return {
        name: None if value is None else statistics.median(figures[name] for figures in rounds)
        for name, value in rounds[0].items()
    }


def shown(figures: Figures) -> str:
    """Return the figures of one run on a line."""
    if "missing" in figures:
        return str(figures["missing"])
    parts = ((name, figures[name]) for name in COLUMNS)
    return ", ".join(f"{name} {value:,.4g}" for name, value in parts if value is not None)


def table(results: dict[str, Figures]) -> str:
    """Return the results as Markdown."""
    lines = [
        "| | documents | documents/s | textsim-db over it | client, MB | bytes/document | "
        "query, median ms | p99 ms | queries/s in batches | recall | precision | |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, figures in results.items():
        if "missing" in figures:
            lines.append(f"| {name} | not run: {figures['missing']} |" + " |" * 10)
            continue
        share = [
            "" if figures[part] is None else f"{figures[part]:.3f}"
            for part in ("recall", "precision")
        ]
        times = figures["times_as_fast"]
        lines.append(
            f"| {name} | {figures['documents']:,.0f} | {figures['rate']:,.0f} "
            f"| {'' if times is None else f'{times:.2f}'} | {figures['peak']:,.0f} "
            f"| {figures['bytes']:,.0f} | {figures['median']:.3f} | {figures['p99']:.3f} "
            f"| {figures['together']:,.0f} | {share[0]} | {share[1]} | {CONTENDERS[name].note} |"
        )
    return "\n".join(lines) + "\n"


PEERS = {
    "documents": "documents",
    "rate": "documents/s",
    "peak": "client, MB",
    "bytes": "bytes/document",
    "median": "one query, median ms",
    "p99": "p99 ms",
    "together": "queries/s in batches",
    "recall": "recall",
    "precision": "precision",
}
SHORT = ("rate", "median", "recall", "precision")


def peers_table(results: dict[str, Figures], columns: Iterable[str]) -> Table:
    """Return the figures of each contender, for the docs."""
    rows = [["", *(PEERS[column] for column in columns), "what it is"]]
    for name, figures in results.items():
        if "missing" not in figures:
            cells = [cell(figures, c) for c in columns]
            rows.append([name, *cells, CONTENDERS[name].note])
    return rows


def cell(figures: Figures, column: str) -> str:
    """Return the cell of a figure; recall and precision have three digits after the point."""
    value = figures[column]
    if value is None:
        return ""
    return f"{value:.3f}" if column in ("recall", "precision") else rounded(value)


def record_peers(everything: dict[str, dict[str, Figures]], of_files: bool) -> None:
    """Record the results: a table for each workload, and a short one for the README."""
    named = {
        identifier(title): {identifier(name): figures for name, figures in results.items()}
        for title, results in everything.items()
    }
    tables = {f"peers_{identifier(t)}": peers_table(r, PEERS) for t, r in everything.items()}
    if of_files:
        record("compare_files", named, tables)
        return
    (results,) = everything.values()
    (figures,) = named.values()
    record(
        "compare",
        figures,
        {"peers": peers_table(results, PEERS), "alternatives": peers_table(results, SHORT)},
    )


def main() -> None:
    """Run everything and write the results."""
    given = arguments()
    with ts.connect(given.database_url) as db:
        os.environ["BENCHMARK_URL"] = db.url
    given.output.mkdir(parents=True, exist_ok=True)
    everything = {}
    report = ""
    for title, documents in workloads(given):
        results = compare(given, documents)
        everything[title] = results
        report += f"## {title}\n\n{table(results)}\n"
    (given.output / "compare.md").write_text(report, encoding="utf-8")
    (given.output / "compare.json").write_text(json.dumps(everything, indent=1), encoding="utf-8")
    print(report)
    if given.record:
        record_peers(everything, given.corpora is not None)
    try:
        from benchmarks.chart import draw
    except ImportError:
        print("no plot: matplotlib is not installed", file=sys.stderr)
        return
    draw(everything, given.output / "compare.svg")


if __name__ == "__main__":
    main()
