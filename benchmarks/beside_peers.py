"""Measure the project beside its peers, with the same documents.

    python -m benchmarks.beside_peers [--documents 20000] [--rounds 3] [--only datasketch,rensa]

Each library runs in its own process and a fresh database. The libraries take turns, and a figure is the
median of the rounds. Slow libraries get fewer documents (--slow-documents). Brute force says which
matches are right.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.generate import documents as generated
from benchmarks.harness import (
    Figures,
    Table,
    fresh_database,
    identifier,
    in_turns,
    median_and_p99,
    medians,
    options,
    publish,
    shown,
)
from benchmarks.peers import PEERS, THRESHOLD
from textsim_db.text.shingles import shingles

OURS = "textsim-db"
LABELS = {
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
"""The columns of the README."""
SHARES = ("recall", "precision")


def measure(name: str, folder: Path, limit: int, queries: int) -> Figures:
    """Run one library in its own process."""
    with fresh_database() as bench:
        arguments = [name, str(folder), bench.db.url, str(limit), str(queries)]
        command = [sys.executable, "-m", "benchmarks.peers", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"missing": done.stderr.strip().splitlines()[-1]}
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    figures["median"], figures["p99"] = median_and_p99(figures.pop("times"))
    return figures


def brute_force(documents: list[tuple[str, str]], asked: Sequence[str]) -> dict[str, set[str]]:
    """Return, for each asked key, the keys of all similar documents, by a product of sparse matrices."""
    from scipy.sparse import csr_matrix

    # Only the shingles of the asked documents can be shared with them.
    texts = dict(documents)
    columns: dict[str, int] = {}
    for key in asked:
        for shingle in shingles(texts[key], "word:3"):
            columns.setdefault(shingle, len(columns))
    starts, places, counts = [0], [], []
    for _, text in documents:
        of_document = shingles(text, "word:3")
        places += [columns[s] for s in of_document if s in columns]
        starts.append(len(places))
        counts.append(len(of_document))
    matrix = csr_matrix(
        (np.ones(len(places), np.int32), places, starts), (len(documents), len(columns))
    )
    sizes = np.array(counts)
    number = {key: i for i, (key, _) in enumerate(documents)}
    rows = [number[key] for key in asked]
    shared = (matrix[rows] @ matrix.T).tocsr()
    similar = {}
    for i, key in enumerate(asked):
        others = shared.indices[shared.indptr[i] : shared.indptr[i + 1]]
        both = shared.data[shared.indptr[i] : shared.indptr[i + 1]]
        similarity = both / (sizes[rows[i]] + sizes[others] - both)
        similar[key] = {documents[j][0] for j in others[similarity >= THRESHOLD]} - {key}
    return similar


def add_shares(figures: Figures, expected: dict[str, set[str]]) -> Figures:
    """Add recall and precision over the pairs of the queried documents."""
    found = {key: set(keys) - {key} for key, keys in figures.pop("found").items()}
    pairs = sum(len(expected[key]) for key in found)
    hits = sum(len(found[key] & expected[key]) for key in found)
    reported = sum(map(len, found.values()))
    recall, precision = hits / pairs if pairs else None, hits / reported if reported else None
    return figures | {"pairs": pairs, "recall": recall, "precision": precision}


def compare(given: argparse.Namespace, folder: Path) -> dict[str, Figures]:
    """Return the medians of each library, without the libraries that are not installed."""
    made = generated(given.documents, given.words, 0.2, moved=0.1)
    documents = list(made)
    slow = min(given.slow_documents, len(documents))
    few = {key for key, _ in documents[:slow]}
    asked = [key for key, _ in documents]
    random.Random(1).shuffle(asked)
    # The documents that every library indexes come first.
    asked = sorted(asked, key=lambda key: key not in few)[: given.queries]
    with (folder / "documents").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(document) + "\n" for document in documents)
    (folder / "queries").write_text(json.dumps(asked), encoding="utf-8")
    expected = {
        limit: brute_force(documents[:limit], [k for k in asked if limit > slow or k in few])
        for limit in {slow, len(documents)}
    }

    def run(name: str, number: int) -> Figures:
        is_slow = PEERS[name].slow
        limit, queries = (slow, given.slow_queries) if is_slow else (len(documents), given.queries)
        figures = measure(name, folder, limit, queries)
        print(f"round {number + 1}, {name}: {figures.get('rate', 0):,.0f}/s", file=sys.stderr)
        return figures if "missing" in figures else add_shares(figures, expected[limit])

    names = given.only.split(",")
    rounds = in_turns({name: partial(run, name) for name in names}, given.rounds)
    for name, results in list(rounds.items()):
        if missing := [figures["missing"] for figures in results if "missing" in figures]:
            print(f"{name} is left out: {missing[0]}", file=sys.stderr)
            del rounds[name]
    return {name: medians(results) for name, results in rounds.items()}


def add_ratios(results: dict[str, Figures]) -> None:
    """Add how many times as fast the project loads the same number of documents."""
    ours = results.get(OURS, {})
    for figures in results.values():
        same = ours.get("documents") == figures["documents"]
        figures["times_as_fast"] = ours["rate"] / figures["rate"] if same else None


def peers_table(results: dict[str, Figures], columns: Sequence[str]) -> Table:
    """Return a row for each library."""
    rows = [["", *(LABELS[column] for column in columns), "what it is"]]
    for name, figures in results.items():
        cells = [
            f"{figures[column]:.3f}"
            if column in SHARES and figures[column] is not None
            else shown(figures[column])
            for column in columns
        ]
        rows.append([name, *cells, PEERS[name].note])
    return rows


def main() -> None:
    """Measure the libraries, and print a table."""
    parser = options(
        __doc__,
        documents=20_000,
        words=200,
        rounds=3,
        queries=500,
        slow_documents=5_000,
        slow_queries=100,
    )
    parser.add_argument("--only", default=",".join(PEERS), help="names with commas between them")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = compare(given, Path(folder))
    add_ratios(results)
    figures = {identifier(name): of_peer for name, of_peer in results.items()}
    tables = {"peers": peers_table(results, [*LABELS]), "alternatives": peers_table(results, SHORT)}
    publish(given.record, "compare", figures, tables)


if __name__ == "__main__":
    main()
