"""Measure the project beside its peers, with the same documents.

    python -m benchmarks.beside_peers [--documents 20000] [--rounds 3] [--only datasketch,rensa]
        [--trgm-url postgresql://...]

Each library runs in its own process and a fresh database. The libraries take turns, and a figure is the
median of the rounds. Recall and precision are counted over the queries of all rounds, which differ.
Brute force says which documents are similar. Slow libraries get fewer documents and queries.

The embedded server has no pg_trgm: --trgm-url names a server that has it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.generate import documents as generated
from benchmarks.harness import (
    Bench,
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
from benchmarks.peers import PEERS, THRESHOLD, Documents

OURS = "textsim-db"
LOAD = {
    "documents": "documents",
    "rate": "documents/s",
    "processor": "processor, us a document",
    "shingling": "of it shingles in Python",
    "peak": "client, MB",
    "bytes": "bytes/document",
}
SEARCH = {
    "median": "one query, median ms",
    "p99": "p99 ms",
    "together": "queries/s in batches",
    "pairs": "pairs",
    "recall": "recall",
    "precision": "precision",
}
SHORT = {name: (LOAD | SEARCH)[name] for name in ("rate", "median", "recall", "precision")}
"""The columns of the README."""
SHARES = ("recall", "precision")
COUNTS = ("pairs", "hits", "reported")
SLOW_QUERIES = 100
"""The single queries of a slow library."""
CHUNK = 1_000
"""The queries that brute force compares at once: more of them take more memory."""

Similar = dict[str, set[str]]
"""For each key, the keys of all similar documents."""


class BruteForce:
    """The exact similarities of documents of invented words, which need no normal form."""

    def __init__(self, documents: Documents) -> None:
        self._keys = [key for key, _ in documents]
        numbers: dict[str, int] = {}
        sets = [self._codes(text, numbers) for _, text in documents]
        self._sizes = np.array([len(codes) for codes in sets])
        self._starts = np.concatenate([[0], np.cumsum(self._sizes)])
        self._shingles = np.concatenate(sets)

    @staticmethod
    def _codes(text: str, numbers: dict[str, int]) -> npt.NDArray[np.int64]:
        """Return each shingle of three words once, as the numbers of its words: three times 20 bits."""
        words = [numbers.setdefault(word, len(numbers)) for word in text.split()]
        assert len(numbers) <= 1 << 20
        array = np.array(words, np.int64)
        return np.unique(array[:-2] << 40 | array[1:-1] << 20 | array[2:])

    def similar(self, asked: Sequence[str], limit: int) -> Similar:
        """Return what is similar to the asked documents, among the first documents up to a limit."""
        from scipy.sparse import csr_matrix

        number = {key: i for i, key in enumerate(self._keys[:limit])}
        rows = np.array([number[key] for key in asked])
        starts = self._starts[: limit + 1]
        shingles = self._shingles[: starts[-1]]
        # Only the shingles of the asked documents can be shared with them.
        parts = [shingles[starts[row] : starts[row + 1]] for row in rows]
        columns = np.unique(np.concatenate(parts))
        places = np.searchsorted(columns, shingles)
        places[places == len(columns)] = 0
        has_column = columns[places] == shingles
        counts = np.concatenate([[0], np.cumsum(has_column)])[starts]
        ones = np.ones(counts[-1], np.int32)
        matrix = csr_matrix((ones, places[has_column], counts), (limit, len(columns)))
        transposed = matrix.T.tocsr()
        similar: Similar = {}
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            shared = (matrix[chunk] @ transposed).tocoo()
            sizes = self._sizes[chunk[shared.row]] + self._sizes[shared.col] - shared.data
            is_similar = shared.data / sizes >= THRESHOLD
            for row in chunk:
                similar[self._keys[row]] = set()
            for i, j in zip(shared.row[is_similar], shared.col[is_similar], strict=True):
                if chunk[i] != j:
                    similar[self._keys[chunk[i]]].add(self._keys[j])
        return similar


def measure(
    name: str, folder: Path, limit: int, queries: list[list[str]], server: str | None
) -> Figures:
    """Run one library in its own process; queries: keys to look up one by one, and together."""
    (folder / "queries").write_text(json.dumps(queries), encoding="utf-8")
    with fresh_database(server) as bench:
        command = [sys.executable, "-m", "benchmarks.peers", name, str(folder), bench.db.url]
        lines, server_seconds = run([*command, str(limit)], bench)
    figures: Figures = json.loads(lines[-1])
    if "missing" in figures:
        return figures
    figures["processor"] += 1e6 * (server_seconds[1] - server_seconds[0]) / limit
    figures["median"], figures["p99"] = median_and_p99(figures.pop("times"))
    return figures


def run(command: list[str], bench: Bench) -> tuple[list[str], list[float]]:
    """Return the lines that a command prints, and the seconds of the server's processor at each line."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [(line, bench.server_seconds()) for line in process.stdout]
    if process.returncode:
        raise SystemExit(f"this command failed: {' '.join(command)}")
    return [line for line, _ in lines], [seconds for _, seconds in lines]


def count_pairs(figures: Figures, asked: Sequence[str], similar: Similar) -> Figures:
    """Return the figures with the pairs of the queried documents, and how many of them were found."""
    answers = [set(keys) - {key} for key, keys in zip(asked, figures.pop("found"), strict=True)]
    return figures | {
        "pairs": sum(len(similar[key]) for key in asked),
        "hits": sum(len(keys & similar[key]) for key, keys in zip(asked, answers, strict=True)),
        "reported": sum(map(len, answers)),
    }


def compare(given: argparse.Namespace, folder: Path) -> dict[str, Figures]:
    """Return the figures of each library, or the error of a library that cannot be measured."""
    documents = list(generated(given.documents, given.words, 0.2, moved=0.1))
    with (folder / "documents").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(document) + "\n" for document in documents)
    plans = {name: plan(name, given, documents) for name in given.only.split(";")}
    brute_force = BruteForce(documents)
    wanted: dict[int, set[str]] = {}
    for limit, rounds in plans.values():
        wanted.setdefault(limit, set()).update(*rounds)
    similar = {n: brute_force.similar(sorted(keys), n) for n, keys in wanted.items()}
    del brute_force

    def measure_round(name: str, number: int) -> Figures:
        limit, rounds = plans[name]
        asked = rounds[number]
        is_slow = limit < len(documents)
        singles = asked[: SLOW_QUERIES if is_slow else given.queries]
        server = given.trgm_url if name == "pg_trgm" else None
        figures = measure(name, folder, limit, [singles, asked], server)
        rate = f"{figures.get('rate', 0):,.0f}/s"
        print(f"round {number + 1}, {name}: {figures.get('missing', rate)}", file=sys.stderr)
        return figures if "missing" in figures else count_pairs(figures, asked, similar[limit])

    sides = {name: partial(measure_round, name) for name in plans}
    return {name: summary(rounds) for name, rounds in in_turns(sides, given.rounds).items()}


def plan(name: str, given: argparse.Namespace, documents: Documents) -> tuple[int, list[list[str]]]:
    """Return how many documents a library gets, and the keys that it looks up in each round."""
    peer = PEERS[name]
    limit = min(peer.most_documents, len(documents))
    keys = [key for key, _ in documents[:limit]]
    random.Random(1).shuffle(keys)
    size = min(peer.most_queries, given.many, limit // given.rounds)
    return limit, [keys[i * size : (i + 1) * size] for i in range(given.rounds)]


def summary(rounds: Sequence[Figures]) -> Figures:
    """Return the medians of the figures of all rounds, and recall and precision over all pairs."""
    if missing := [figures for figures in rounds if "missing" in figures]:
        return missing[0]
    figures = medians([{**f, "version": 0} for f in rounds]) | {"version": rounds[0]["version"]}
    pairs, hits, reported = (sum(f[name] for f in rounds) for name in COUNTS)
    del figures["hits"]
    return figures | {
        "pairs": pairs,
        "reported": reported,
        "recall": hits / pairs if pairs else None,
        "precision": hits / reported if reported else None,
    }


def add_ratios(results: dict[str, Figures]) -> None:
    """Add how many times as fast the project loads the same number of documents."""
    ours = results.get(OURS, {})
    for figures in measured(results).values():
        same = ours.get("documents") == figures["documents"]
        figures["times_as_fast"] = ours["rate"] / figures["rate"] if same else None


def measured(results: dict[str, Figures]) -> dict[str, Figures]:
    """Return the libraries that could be measured."""
    return {name: figures for name, figures in results.items() if "missing" not in figures}


def peers_table(results: dict[str, Figures], columns: Mapping[str, str]) -> list[list[str]]:
    """Return a row for each library, with the columns of these labels."""
    rows = [["", *columns.values()]]
    for name, figures in results.items():
        rows.append([name, *(cell(column, figures.get(column)) for column in columns)])
    return rows


def cell(column: str, value: Any) -> str:
    """Return a figure as text."""
    if column in SHARES and value is not None:
        return f"{value:.3f}"
    return value if isinstance(value, str) else shown(value)


def with_notes(table: list[list[str]], results: dict[str, Figures]) -> Table:
    """Return a table with a last column that says what a library is, or why it was not measured."""
    notes = [figures.get("missing", PEERS[name].note) for name, figures in results.items()]
    return [[*row, note] for row, note in zip(table, ["what it is", *notes], strict=True)]


def calls_table(results: dict[str, Figures]) -> Table:
    """Return the version of each library, and how it is called."""
    rows = [["", "version", "bands x rows", "load", "look-up"]]
    for name, figures in results.items():
        peer = PEERS[name]
        version = figures.get("version", "")
        rows.append([name, version, peer.bands, peer.load_calls, peer.search_calls])
    return rows


def main() -> None:
    """Measure the libraries, and print tables."""
    parser = options(__doc__, documents=20_000, words=200, rounds=3, queries=500, many=15_000)
    parser.add_argument(
        "--only", default=";".join(PEERS), help="names with semicolons between them"
    )
    parser.add_argument("--trgm-url", help="the address of a server that has pg_trgm")
    given = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        results = compare(given, Path(folder))
    add_ratios(results)
    figures: Figures = {identifier(name): of_peer for name, of_peer in results.items()}
    figures |= {"load_average_before": load, "words": given.words}
    tables = {
        "peer_loads": peers_table(results, LOAD),
        "peer_searches": with_notes(peers_table(results, SEARCH), results),
        "peer_calls": calls_table(results),
        "alternatives": with_notes(peers_table(measured(results), SHORT), measured(results)),
    }
    publish(given.record, "compare", figures, tables)


if __name__ == "__main__":
    main()
