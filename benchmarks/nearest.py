"""The ten nearest documents beside brute force and datasketch's MinHashLSHForest: recall and time.

    python -m benchmarks.nearest [--documents 100000] [--queries 200] [--record]

A query is a document without a tenth of its words. The truth is computed from the same shingles. A query
counts for the recall if its tenth document has a similarity of 0.3 or more; every query counts for the
time. Among documents as similar as the tenth, any is right.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from datasketch import MinHash, MinHashLSHForest

from benchmarks.harness import (
    Bench,
    Figures,
    fresh_database,
    median_and_p99,
    milliseconds,
    options,
    publish,
    read_corpora,
    shown,
)

DATA = Path("../shared/data")
BEST = 10
LEAST = 0.3
THRESHOLDS = (0.3, 0.5, 0.8)
HASHES = 128
SENTENCE = re.compile(r"(?<=[.!?])\s+")

Shingles = frozenset[str]


class Texts(NamedTuple):
    """A collection, and the shingle that suits its texts."""

    label: str
    shingle: str
    texts: list[str]


def collections(most: int) -> list[Texts]:
    """Return titles and sentences of arXiv, and licences."""
    ((_, papers), (_, licences)) = read_corpora(
        [DATA / "arxiv.jsonl.gz", DATA / "licences.jsonl.gz"], 10**9
    )
    titles = [paper["text"].partition("\n")[0] for paper in papers]
    sentences = [
        sentence
        for paper in papers
        for sentence in SENTENCE.split(paper["text"].partition("\n")[2])
        if len(sentence.split()) >= 5
    ]
    return [
        Texts("titles", "word:1", titles[:most]),
        Texts("sentences", "word:1", sentences[:most]),
        Texts("licences", "word:3", [licence["text"] for licence in licences][:most]),
    ]


class Truth:
    """Brute force: every document that shares a shingle with a text, by an inverted index."""

    def __init__(self, documents: Sequence[Shingles]) -> None:
        self._sizes = [len(document) for document in documents]
        self._holders: dict[str, list[int]] = defaultdict(list)
        for number, document in enumerate(documents):
            for shingle in document:
                self._holders[shingle].append(number)

    def similarities(self, text: Shingles) -> dict[int, float]:
        """Return the similarity of every document that shares a shingle with the text."""
        shared = Counter(number for each in text for number in self._holders.get(each, ()))
        return {n: both / (len(text) + self._sizes[n] - both) for n, both in shared.items()}


def forest_of(documents: Sequence[Shingles]) -> Callable[[Shingles], list[int]]:
    """Return the look-up of a MinHashLSHForest of documents."""
    forest = MinHashLSHForest(num_perm=HASHES)
    for number, document in enumerate(documents):
        forest.add(number, minhash(document))
    forest.index()
    return lambda shingles: list(forest.query(minhash(shingles), BEST))


def minhash(shingles: Shingles) -> Any:
    """Return datasketch's signature of a set."""
    signature = MinHash(num_perm=HASHES)
    signature.update_batch([shingle.encode() for shingle in shingles])
    return signature


def measure(bench: Bench, texts: Texts, queries: int) -> dict[float, dict[str, Figures]]:
    """Return the figures of each side at each threshold, for one collection."""
    unit, _, length = texts.shingle.partition(":")

    def shingles(text: str) -> Shingles:
        rows = bench.connection.execute(
            "SELECT textsim.shingles(%s, %s, %s)", [text, unit, int(length)]
        )
        return frozenset(rows.fetchall()[0][0])

    rng = random.Random(1)
    chosen = [
        " ".join(word for word in text.split() if rng.random() > 0.1)
        for text in rng.sample(texts.texts, queries)
    ]
    documents = [shingles(text) for text in texts.texts]
    truth = Truth(documents)
    truths = [truth.similarities(shingles(text)) for text in chosen]
    in_forest = forest_of(documents)
    forest = side_figures(lambda text: in_forest(shingles(text)), chosen, truths)
    return {
        threshold: corpus_figures(bench, texts, threshold, chosen, truths) | {"forest": forest}
        for threshold in THRESHOLDS
    }


def corpus_figures(
    bench: Bench,
    texts: Texts,
    threshold: float,
    chosen: Sequence[str],
    truths: Sequence[dict[int, float]],
) -> dict[str, Figures]:
    """Return the figures of a corpus with this threshold, by Python and by SQL."""
    name = f"{texts.label} {threshold}"
    corpus = bench.db.create_corpus(name, shingle=texts.shingle, threshold=threshold, recall=1)
    corpus.add_many((str(number), text) for number, text in enumerate(texts.texts))

    def by_python(text: str) -> list[int]:
        return [int(match.key) for match in corpus.nearest(text, BEST)]

    def by_sql(text: str) -> list[int]:
        query = "SELECT key::integer FROM textsim.nearest(%s, %s, %s)"
        rows = bench.connection.execute(query, [name, text, BEST])
        return [number for (number,) in rows]

    return {
        "python": side_figures(by_python, chosen, truths),
        "sql": side_figures(by_sql, chosen, truths),
    }


def side_figures(
    find: Callable[[str], list[int]], texts: Sequence[str], truths: Sequence[dict[int, float]]
) -> Figures:
    """Return the recall and the time of a side."""
    find(texts[0])
    times, right, counted = [], 0, 0
    for text, similarities in zip(texts, truths, strict=True):
        found: list[int] = []
        times.append(milliseconds(lambda: found.extend(find(text))))  # noqa: B023 - called at once
        best = sorted(similarities.values(), reverse=True)[:BEST]
        if len(best) < BEST or best[-1] < LEAST:
            continue
        counted += 1
        right += sum(similarities.get(number, 0.0) >= best[-1] for number in found)
    median, p99 = median_and_p99(times)
    return {
        "queries": counted,
        "recall": right / max(1, BEST * counted),
        "median_ms": median,
        "p99_ms": p99,
    }


def main() -> None:
    """Measure each collection at each threshold, and print a table."""
    parser = options(__doc__, documents=100_000, queries=200)
    given = parser.parse_args()
    figures: dict[str, Any] = {}
    rows = [
        ["texts", "threshold", "recall", "Python, ms", "SQL, ms", "forest: recall", "forest, ms"]
    ]
    for texts in collections(given.documents):
        with fresh_database() as bench:
            by_threshold = measure(bench, texts, given.queries)
        for threshold, sides in by_threshold.items():
            figures[f"{texts.label}_t{threshold * 10:.0f}"] = sides
            times = {
                side: f"{shown(values['median_ms'])} ({shown(values['p99_ms'])})"
                for side, values in sides.items()
            }
            rows.append(
                [
                    f"{len(texts.texts):,} {texts.label}",
                    f"{threshold}",
                    f"{sides['python']['recall']:.3f}",
                    times["python"],
                    times["sql"],
                    f"{sides['forest']['recall']:.3f}",
                    times["forest"],
                ]
            )
    publish(given.record, "nearest", figures, {"nearest": rows})


if __name__ == "__main__":
    main()
