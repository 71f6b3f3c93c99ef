"""Quotations of real texts, found by passages, by containment, by phrase search and by a suffix array.

    python -m benchmarks.find_quotations FOLDER [--quotations 10000] [--any-phrases 500] [--record]

FOLDER has the files of real texts. All sides have the same texts, and take turns query by query. Which
documents share a run of 13 words with a query, the suffix array decides.

- passages: a corpus with passages, in Python and in SQL.
- containment: a corpus without passages, whose candidates share a bucket with the text.
- phrase: PostgreSQL's phraseto_tsquery and a GIN index, over texts without punctuation. It gets the
  words of the quotation alone, so the side need not find the start and the end.
- any phrase: the same with the whole text: one phrase for each run of 13 words, any of which may match.
- suffix array: libdivsufsort over the normal forms, in the memory of the client.
"""

from __future__ import annotations

import logging
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydivsufsort import divsufsort, sa_search

from benchmarks.harness import (
    Bench,
    Figures,
    fresh_database,
    identifier,
    median_and_p99,
    options,
    publish,
    table_of,
)
from benchmarks.quotations import Quotation, quotations, real_texts, words_of
from textsim_db.text.array_types import Int32Array

PASSAGE = 13
SHARE = 0.5
"""The threshold of containment."""
LABELS = {
    "quotations": "quotations",
    "found": "&emsp;found",
    "in_place": "&emsp;found at their place",
    "all_documents": "documents that share 13 words with a query, found of 1",
    "wrong": "documents that share no 13 words, a query",
    "build_s": "build, s",
    "megabytes": "index and texts, MB",
    "median_ms": "query, median ms",
    "p99_ms": "&emsp;p99 ms",
}


class Place(NamedTuple):
    """A run of words of a document that a side has found."""

    key: str
    """The key of the document."""
    words: int
    """The words of the run."""
    in_document: int
    """The words of the document before the run."""


class Side(ABC):
    """A way to find quotations."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    @abstractmethod
    def load(self, texts: Mapping[str, str]) -> None:
        """Index all texts."""

    @abstractmethod
    def find(self, query: Quotation) -> Iterable[Place | str]:
        """Return the places, or only the keys, of the documents that have a quotation."""

    def stored_bytes(self) -> int:
        """Return the bytes of the index and of the texts; 0 without an index of its own."""
        return 0


class Passages(Side):
    """Our passages, in Python."""

    def load(self, texts: Mapping[str, str]) -> None:
        """Index all texts."""
        self.corpus = self.bench.db.create_corpus("passages", passages=PASSAGE)
        self.corpus.add_many(texts.items())

    def find(self, query: Quotation) -> Iterable[Place]:
        """Return the places of all passages."""
        found = self.corpus.passages(query.text)
        return [Place(passage.key, passage.words, passage.in_document) for passage in found]

    def stored_bytes(self) -> int:
        """Return the bytes of the corpus."""
        return self.bench.stored_bytes("passages")


class PassagesInSql(Side):
    """Our passages, in SQL."""

    def load(self, texts: Mapping[str, str]) -> None:
        """Use the corpus of Passages."""

    def find(self, query: Quotation) -> Iterable[Place]:
        """Return the places of all passages."""
        statement = "SELECT key, words, in_document FROM textsim.passages('passages', %s)"
        return [Place(*row) for row in self.bench.connection.execute(statement, [query.text])]


class Containment(Side):
    """Our containment of shingles, without passages."""

    def load(self, texts: Mapping[str, str]) -> None:
        """Index all texts."""
        self.corpus = self.bench.db.create_corpus("containment")
        self.corpus.add_many(texts.items())

    def find(self, query: Quotation) -> Iterable[str]:
        """Return the candidates that have half of the text's shingles."""
        return [match.key for match in self.corpus.query(query.text, SHARE, measure="containment")]

    def stored_bytes(self) -> int:
        """Return the bytes of the corpus."""
        return self.bench.stored_bytes("containment")


class Phrase(Side):
    """PostgreSQL's phrase search for the words of the quotation."""

    def load(self, texts: Mapping[str, str]) -> None:
        """Index all texts."""
        run = self.bench.connection.execute
        run("CREATE TABLE phrase (key text, body text, words tsvector)")
        with self.bench.connection.cursor().copy("COPY phrase (key, body) FROM STDIN") as copy:
            for row in texts.items():
                copy.write_row(row)
        run(
            "UPDATE phrase SET words = to_tsvector('simple', regexp_replace(body, '\\W+', ' ', 'g'))"
        )
        run("VACUUM FULL ANALYZE phrase")
        run("CREATE INDEX ON phrase USING gin (words)")

    def find(self, query: Quotation) -> Iterable[str]:
        """Return the documents that have all words of the quotation in a row."""
        phrase = " ".join(query.words[query.before : query.before + query.length])
        statement = "SELECT key FROM phrase WHERE words @@ phraseto_tsquery('simple', %s)"
        return [row[0] for row in self.bench.connection.execute(statement, [phrase])]

    def stored_bytes(self) -> int:
        """Return the bytes of the table and its index."""
        return int(self.bench.number("SELECT pg_total_relation_size('phrase')"))


class AnyPhrase(Side):
    """PostgreSQL's phrase search for any 13 words of the text."""

    def load(self, texts: Mapping[str, str]) -> None:
        """Use the table of Phrase."""

    STATEMENT = """
    SELECT key FROM phrase WHERE words @@ (
        SELECT string_agg(q.phrase, ' | ')::tsquery
        FROM (
            SELECT string_agg(quote_literal(w.word), ' <-> ') OVER (
                ORDER BY w.place ROWS BETWEEN 12 PRECEDING AND CURRENT ROW) AS phrase, w.place
            FROM (
                SELECT t.lexeme AS word, p.place
                FROM unnest(to_tsvector('simple', regexp_replace(%s, '\\W+', ' ', 'g'))) t,
                    unnest(t.positions) p (place)
            ) w
        ) q
        WHERE q.place >= 13)
    """

    def find(self, query: Quotation) -> Iterable[str]:
        """Return the documents that have any 13 words of the text in a row."""
        rows = self.bench.connection.execute(self.STATEMENT, [query.text])
        return [row[0] for row in rows]


class SuffixArray(Side):
    """A suffix array over the normal forms. Each word has a space before and after it."""

    def load(self, texts: Mapping[str, str]) -> None:
        """Index all texts."""
        self.keys = list(texts)
        forms = [f" {' '.join(words)} ".encode() for words in words_of(texts).values()]
        self.data = b"\n".join(forms)
        self.array = divsufsort(self.data)
        self.spaces = np.flatnonzero(np.frombuffer(self.data, np.uint8) == ord(" ")).astype(
            np.int32
        )
        starts = np.cumsum([0, *(len(form) + 1 for form in forms[:-1])])
        self.first_spaces = np.searchsorted(self.spaces, starts)

    def find(self, query: Quotation) -> Iterable[Place]:
        """Return the runs of at least 13 words of the text in all documents."""
        matches = [
            self._positions(query.words[i : i + PASSAGE])
            for i in range(len(query.words) - PASSAGE + 1)
        ]
        windows = np.repeat(np.arange(len(matches)), [len(each) for each in matches])
        numbers = np.searchsorted(self.spaces, np.concatenate(matches))
        documents = np.searchsorted(self.first_spaces, numbers, "right") - 1
        order = np.lexsort((windows, numbers - windows))
        windows, numbers, documents = windows[order], numbers[order], documents[order]
        # Windows of one run have neighbouring places in the text and in the document.
        ends = np.flatnonzero((np.diff(windows) != 1) | (np.diff(numbers) != 1)) + 1
        starts = np.concatenate(([0], ends))[: len(windows)]
        lengths = np.diff([*starts, len(windows)]) + PASSAGE - 1
        places = numbers[starts] - self.first_spaces[documents[starts]]
        found = zip(documents[starts].tolist(), lengths.tolist(), places.tolist(), strict=True)
        return [Place(self.keys[document], *place) for document, *place in found]

    def _positions(self, words: Sequence[str]) -> Int32Array:
        """Return where a run of words begins, in bytes."""
        array: Int32Array = self.array
        count, first = sa_search(self.data, array, f" {' '.join(words)} ".encode())
        return array[first : first + count] if count else array[:0]

    def stored_bytes(self) -> int:
        """Return the bytes in memory."""
        return len(self.data) + int(self.array.nbytes) + self.spaces.nbytes


SIDES: dict[str, type[Side]] = {
    "passages": Passages,
    "passages in SQL": PassagesInSql,
    "containment before": Containment,
    "phrase": Phrase,
    "any phrase": AnyPhrase,
    "suffix array": SuffixArray,
}


class Tally:
    """The loaded texts of a side, and what it has found."""

    def __init__(self, side: Side, texts: Mapping[str, str]) -> None:
        start = time.perf_counter()
        side.load(texts)
        self.build = time.perf_counter() - start
        self.stored_bytes = side.stored_bytes()
        self.times: list[float] = []
        self.found = self.in_place = self.right = self.expected = self.wrong = 0
        self.gives_places = False

    def count(self, query: Quotation, found: Iterable[Place | str], expected: set[str]) -> None:
        """Compare what was found with the documents that share a run with the query."""
        places = [each for each in found if isinstance(each, Place)]
        keys = {each.key if isinstance(each, Place) else each for each in found}
        self.gives_places |= bool(places)
        self.found += query.key in keys
        self.in_place += any(query.is_at(*place) for place in places)
        self.expected += len(expected)
        self.right += len(expected & keys)
        self.wrong += len(keys - expected)

    def figures(self) -> Figures:
        """Return the figures of the side."""
        median, p99 = median_and_p99(self.times)
        return {
            "quotations": len(self.times),
            "found": self.found,
            "in_place": self.in_place if self.gives_places else None,
            "all_documents": self.right / self.expected,
            "wrong": self.wrong / len(self.times),
            "build_s": self.build if self.stored_bytes else None,
            "megabytes": self.stored_bytes / 1e6 or None,
            "median_ms": median,
            "p99_ms": p99,
        }


def measure(
    bench: Bench, texts: Mapping[str, str], queries: Sequence[Quotation], any_phrases: int
) -> dict[str, Figures]:
    """Return the figures of each side."""
    sides = {name: side(bench) for name, side in SIDES.items()}
    tallies = {name: Tally(side, texts) for name, side in sides.items()}
    bench.connection.execute("CHECKPOINT")
    for side in sides.values():  # compiles kernels, and plans statements
        list(side.find(queries[0]))
    for number, query in enumerate(queries):
        asked = [name for name in sides if name != "any phrase" or number < any_phrases]
        found = {}
        for name in asked[:: -1 if number % 2 else 1]:
            start = time.perf_counter()
            found[name] = list(sides[name].find(query))
            tallies[name].times.append((time.perf_counter() - start) * 1000)
        expected = {place.key for place in found["suffix array"] if isinstance(place, Place)}
        for name in asked:
            tallies[name].count(query, found[name], expected)
    return {name: tally.figures() for name, tally in tallies.items()}


def main() -> None:
    """Measure all sides, and print their table."""
    parser = options(__doc__, quotations=10_000, any_phrases=500, seed=1)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    texts = real_texts(given.folder)
    queries = list(
        quotations(random.Random(given.seed), words_of(texts), PASSAGE, given.quotations)
    )
    logging.getLogger("textsim_db").setLevel(logging.ERROR)  # containment warns of missed documents
    with fresh_database() as bench:
        figures = measure(bench, texts, queries, given.any_phrases)
    figures["suffix array"] |= {"all_documents": None, "wrong": None}  # it decides them
    publish(
        given.record,
        "find_quotations",
        {identifier(name): of_side for name, of_side in figures.items()} | {"texts": len(texts)},
        {"find_quotations": table_of(figures, LABELS, f"{len(texts):,} real texts")},
    )


if __name__ == "__main__":
    main()
