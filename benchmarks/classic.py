"""The classic experiment: documents as sets of ids, 100 hash functions, bands of 20 rows.

    python -m benchmarks.classic [--documents 12000] [--record]

Five ways find the similar pairs of the same sets: brute force, the estimates of MinHash signatures,
banded LSH in memory, a corpus with the same bands, and a corpus that chooses its own. Brute force is the
truth: it says which pairs the others miss (Type II), and which they report wrongly (Type I). Two
families of hash functions are compared: (a x + b) mod p, and multiply and shift. The figures are the
processor time and the errors of each way, and the share of the pairs of a similarity that it finds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from benchmarks.harness import Bench, Figures, fresh_database, options, publish, shown
from textsim_db.base.numba_compiler import Int64Array, kernel
from textsim_db.measures.matrices import FAMILIES, signatures
from textsim_db.settings.choose_bands import Bands

HASHES = 100
BANDING = Bands(bands=5, rows=20)
THRESHOLD = 0.8
IDS = 100_000
"""The number of words; two documents that were not made as a pair share 0.2 ids on average."""
LEAST, MOST = 100, 200
"""The ids in a set."""
BINS = np.linspace(0.5, 1, 11)
"""The similarities between which pairs count together."""
ROUNDS = 3
PUBLISHED = {"buckets_ms": 265, "look_ups_ms": 948}
"""The times that the articles report for 12,000 documents, on their machine, with signatures given."""

Pair: TypeAlias = tuple[int, int]
Family: TypeAlias = Callable[["Sets", int], Int64Array]


class Sets(NamedTuple):
    """The documents: sets of ids, each in ascending order."""

    ids: Int64Array
    offsets: Int64Array
    """The bounds of the documents in ids: (documents + 1,)."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def lists(self) -> Iterator[list[int]]:
        """Yield the ids of each document."""
        ids = self.ids.tolist()
        yield from (ids[start:end] for start, end in pairwise(self.offsets.tolist()))


def make_sets(count: int, seed: int) -> Sets:
    """Make pairs of sets whose similarities are spread from 0.5 to 1."""
    rng = np.random.default_rng(seed)
    sets: list[Int64Array] = []
    for _ in range(count // 2):
        size, similarity = int(rng.integers(LEAST, MOST + 1)), rng.uniform(0.5, 1)
        shared = round(2 * size * similarity / (1 + similarity))
        drawn = rng.choice(IDS, 2 * size - shared, replace=False).astype(np.int64)
        sets += [np.sort(drawn[:size]), np.sort(drawn[size - shared :])]
    offsets = np.cumsum([0, *map(len, sets)])
    return Sets(np.concatenate(sets), offsets.astype(np.int64))


# The families of hash functions


def family(name: str) -> Family:
    """Return the signatures by a family: a matrix with a row for each document."""

    def compute(sets: Sets, seed: int) -> Int64Array:
        values = sets.ids.astype(np.uint64)
        matrix = signatures(values, sets.offsets, FAMILIES[name], HASHES, seed)
        return np.ascontiguousarray(matrix.T)

    return compute


BY_NAME = {"mod p": family("mod_prime"), "multiply and shift": family("multiply_shift")}


# The ways


class Way(NamedTuple):
    """The pairs that a way found, and its milliseconds of the processor."""

    found: set[Pair]
    """The pairs that it reports, each with the lower document first."""
    signatures_ms: float | None
    prepared_ms: float | None
    """For buckets, or for the load of a corpus."""
    look_ups_ms: float
    """For the neighbours of every document."""


@kernel
def brute_force(ids: Int64Array, offsets: Int64Array, least: float) -> list[tuple[int, int, float]]:
    """Return all pairs from a similarity on, by comparing each set with each other set."""
    found = [(0, 0, 0.0)]
    is_in_a = np.zeros(IDS, np.uint8)
    for a in range(len(offsets) - 1):
        own = ids[offsets[a] : offsets[a + 1]]
        is_in_a[own] = 1
        for b in range(a + 1, len(offsets) - 1):
            shared = 0
            for i in range(offsets[b], offsets[b + 1]):
                shared += is_in_a[ids[i]]
            either = len(own) + offsets[b + 1] - offsets[b] - shared
            if shared / either >= least:
                found.append((a, b, shared / either))
        is_in_a[own] = 0
    return found[1:]


@kernel
def estimated_pairs(matrix: Int64Array, least: float) -> list[tuple[int, int]]:
    """Return all pairs whose signatures have this share of equal values."""
    found = [(0, 0)]
    for a in range(len(matrix)):
        for b in range(a + 1, len(matrix)):
            equal = 0
            for k in range(matrix.shape[1]):
                equal += matrix[a, k] == matrix[b, k]
            if equal / matrix.shape[1] >= least:
                found.append((a, b))
    return found[1:]


Buckets: TypeAlias = list[dict[bytes, list[int]]]


def buckets_of(matrix: Int64Array, banding: Bands = BANDING) -> Buckets:
    """Return the documents of each bucket of each band."""
    bands: Buckets = []
    for band in range(banding.bands):
        rows = np.ascontiguousarray(matrix[:, band * banding.rows : (band + 1) * banding.rows])
        buckets: dict[bytes, list[int]] = defaultdict(list)
        for document, row in enumerate(rows):
            buckets[row.tobytes()].append(document)
        bands.append(buckets)
    return bands


def candidates_of(document: int, matrix: Int64Array, bands: Buckets) -> set[int]:
    """Return the documents that share a bucket with a document."""
    rows = matrix.shape[1] // len(bands)
    found: set[int] = set()
    for band, buckets in enumerate(bands):
        found.update(buckets[matrix[document, band * rows : (band + 1) * rows].tobytes()])
    found.discard(document)
    return found


def by_estimates(bench: Bench, sets: Sets, family: Family, seed: int) -> Way:
    """Compare all signatures."""
    matrix, signing = spent(bench, lambda: family(sets, seed), ROUNDS)
    found, seconds = spent(bench, lambda: estimated_pairs(matrix, THRESHOLD), ROUNDS)
    return Way(set(found), signing, None, seconds)


def by_bands(bench: Bench, sets: Sets, family: Family, seed: int) -> Way:
    """Look up the documents that share a bucket; nothing is verified."""
    matrix, signing = spent(bench, lambda: family(sets, seed), ROUNDS)
    bands, preparing = spent(bench, lambda: buckets_of(matrix), ROUNDS)
    found, looking = spent(
        bench,
        lambda: [candidates_of(document, matrix, bands) for document in range(len(sets))],
        ROUNDS,
    )
    pairs = {(a, b) for a, others in enumerate(found) for b in others if a < b}
    return Way(pairs, signing, preparing, looking)


def by_corpus(bench: Bench, sets: Sets, name: str, **settings: Any) -> tuple[Way, set[Pair]]:
    """Load the sets as texts of one word for each id, and return also the candidates of the corpus."""
    texts = [" ".join(f"w{id_}" for id_ in ids) for ids in sets.lists()]
    corpus = bench.db.create_corpus(name, shingle="word:1", threshold=THRESHOLD, **settings)
    documents = [(str(number), text) for number, text in enumerate(texts)]
    _, loading = spent(bench, lambda: corpus.add_many(documents))
    matches, looking = spent(bench, lambda: corpus.query_many(texts), ROUNDS)
    pairs = {
        (number, int(match.key))
        for number, row in enumerate(matches)
        for match in row
        if number < int(match.key)
    }
    candidates = {
        ordered(number, int(other.key))
        for number, text in enumerate(texts)
        for other in corpus.candidates(text)
        if int(other.key) != number
    }
    return Way(pairs, None, loading, looking), candidates


def ordered(a: int, b: int) -> Pair:
    """Return a pair with the lower document first."""
    return (a, b) if a < b else (b, a)


def spent(bench: Bench, call: Callable[[], Any], rounds: int = 1) -> tuple[Any, float]:
    """Return the result of a call, and the milliseconds of the processor, by client and server.

    Of several rounds the shortest counts.
    """
    calls = [bench.spend(call) for _ in range(rounds)]
    return calls[0].result, min(each.processor for each in calls) * 1000


# The experiment


class Point(NamedTuple):
    """The pairs of a range of similarity."""

    similarity: float
    """Their mean."""
    found: float
    """The share that became candidates."""
    promised: float
    """The mean of 1 - (1 - s^rows)^bands."""
    pairs: int


class Curve(NamedTuple):
    """Which share of the pairs of a similarity became candidates."""

    banding: Bands
    points: list[Point]


class Experiment(NamedTuple):
    """The ways, and the curves of those with bands."""

    similarities: dict[Pair, float]
    """The exact similarity of each pair that shares half of its ids or more."""
    ways: dict[str, Way]
    curves: dict[str, Curve]

    @property
    def similar(self) -> set[Pair]:
        """The pairs at the threshold or above."""
        return {pair for pair, value in self.similarities.items() if value >= THRESHOLD}


def experiment(bench: Bench, sets: Sets, seed: int) -> Experiment:
    """Run the five ways."""
    warm = make_sets(10, seed)
    brute_force(warm.ids, warm.offsets, 0.5)
    estimated_pairs(BY_NAME["mod p"](warm, seed), THRESHOLD)
    found, seconds = spent(bench, lambda: brute_force(sets.ids, sets.offsets, float(BINS[0])))
    similarities = {(a, b): similarity for a, b, similarity in found}
    exact = {pair for pair, value in similarities.items() if value >= THRESHOLD}
    ways = {"brute force": Way(exact, None, None, seconds)}
    curves: dict[str, Curve] = {}
    for name, family in BY_NAME.items():
        ways[f"MinHash estimates, {name}"] = by_estimates(bench, sets, family, seed)
        way = by_bands(bench, sets, family, seed)
        ways[f"banded LSH in memory, {name}"] = way
        curves[f"in memory, {name}"] = curve(BANDING, similarities, way.found)
    same = {"num_hashes": HASHES, **BANDING._asdict()}
    for name, settings in (("with these bands", same), ("as we would set it", {})):
        ways[f"corpus {name}"], candidates = by_corpus(bench, sets, name, **settings)
        banding = bench.db.corpus(name).config.banding
        assert banding is not None
        curves[f"corpus {name}"] = curve(banding, similarities, candidates)
    return Experiment(similarities, ways, curves)


def curve(banding: Bands, similarities: dict[Pair, float], candidates: set[Pair]) -> Curve:
    """Return the share of the pairs of each bin that are candidates."""
    values = np.array([*similarities.values()])
    is_found = np.array([pair in candidates for pair in similarities])
    points = []
    for least, most in pairwise(BINS):
        chosen = (values >= least) & ((values < most) | (most == 1))
        if chosen.any():
            found, similarity = is_found[chosen].mean(), values[chosen].mean()
            promised = np.mean([banding.probability(value) for value in values[chosen].tolist()])
            point = Point(float(similarity), float(found), float(promised), int(chosen.sum()))
            points.append(point)
    return Curve(banding, points)


def rows_of(result: Experiment) -> list[list[str]]:
    """Return the table of the ways."""
    header = ["", "signatures, ms", "buckets or load, ms", "all look-ups, ms"]
    table = [[*header, "found", "missed (Type II)", "wrong (Type I)"]]
    for name, way in result.ways.items():
        times = map(shown, (way.signatures_ms, way.prepared_ms, way.look_ups_ms))
        counts = (
            len(way.found & result.similar),
            len(result.similar - way.found),
            len(way.found - result.similar),
        )
        table.append([name, *times, *(f"{number:,}" for number in counts)])
    published = (PUBLISHED["buckets_ms"], PUBLISHED["look_ups_ms"])
    return [*table, ["published, 12,000 documents", "", *map(shown, published), "", "", ""]]


def figures_of(result: Experiment, documents: int) -> Figures:
    """Return what the picture shows, and what the page says."""
    return {
        "documents": documents,
        "pairs": documents * (documents - 1) // 2,
        "similar": len(result.similar),
        "curves": {
            name: {**curve.banding._asdict(), "points": [point._asdict() for point in curve.points]}
            for name, curve in result.curves.items()
        },
    }


def main() -> None:
    """Run the experiment, and print the ways and the curves."""
    given = options(__doc__, documents=12_000, seed=1).parse_args()
    sets = make_sets(given.documents, given.seed)
    with fresh_database() as bench:
        result = experiment(bench, sets, given.seed)
    bins = [f"{least:.2f}" for least in BINS[:-1]]
    table = [["similarity from", *bins]]
    for name, (banding, points) in result.curves.items():
        title = f"{name}, {banding.bands} x {banding.rows}"
        table.append([title, *(f"{point.found:.3f}" for point in points)])
        table.append(["&emsp;formula", *(f"{point.promised:.3f}" for point in points)])
    figures = figures_of(result, given.documents)
    tables = {"classic_ways": rows_of(result), "classic_curves": table}
    publish(given.record, "classic", figures, tables)


if __name__ == "__main__":
    main()
