"""While documents are replaced, every answer about passages is right for one committed state."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import psycopg

import textsim_db as ts
from tests.support.passages import QUOTATION, create_corpus
from tests.support.threads import repeating
from tests.support.waiting import PATIENCE_SECONDS

KEYS = [f"k{number}" for number in range(6)]
VERSIONS = 20
READS = 5


def text_of(key: str, version: int) -> str:
    """Return the text of a document in a version, whose number is the place of the quotation."""
    words = [f"{key}v{version}w{number}" for number in range(version)]
    return " ".join([*words, QUOTATION, f"{key}end{version}"])


class Versions:
    """Writes one version of all documents after another, each in one transaction."""

    def __init__(self, corpus: ts.Corpus, url: str) -> None:
        self._corpus, self._url = corpus, url
        self.begun = self.committed = 0
        self.write()

    def write(self) -> None:
        """Write the next version, in Python or in SQL."""
        self.begun += 1
        documents = [(key, text_of(key, self.begun)) for key in KEYS]
        if self.begun % 2:
            self._corpus.add_many(documents)
        else:
            with psycopg.connect(self._url) as connection:
                for document in documents:
                    connection.execute("SELECT textsim.add('c', %s, %s)", document)
        self.committed = self.begun


class Reader:
    """Asks repeatedly, and compares the places of the quotation with the versions of that time."""

    def __init__(self, versions: Versions, places: Callable[[], Iterable[tuple[str, int]]]) -> None:
        self._versions, self._places = versions, places
        self.reads = 0

    def read(self) -> None:
        """Ask once."""
        first = self._versions.committed
        found = list(self._places())
        last = self._versions.begun
        assert sorted(key for key, _ in found) == KEYS
        assert len({place for _, place in found}) == 1, found
        assert first <= found[0][1] <= last, (first, found, last)
        self.reads += 1


def test_answers_are_right_while_documents_are_replaced(db: ts.Database) -> None:
    corpus = create_corpus(db)
    versions = Versions(corpus, db.url)

    def in_python() -> Iterable[tuple[str, int]]:
        return [(p.key, p.in_document) for p in corpus.passages(QUOTATION)]

    def in_sql() -> Iterable[tuple[str, int]]:
        statement = "SELECT key, in_document FROM textsim.passages('c', %s)"
        with psycopg.connect(db.url) as connection:
            return connection.execute(statement, [QUOTATION]).fetchall()

    def of_a_key() -> Iterable[tuple[str, int]]:
        found = corpus.passages_of("k0")
        return [("k0", found[0].in_text), *((p.key, p.in_document) for p in found)]

    def of_all_pairs() -> Iterable[tuple[str, int]]:
        found = list(corpus.shared_passages())
        assert len(found) == len(KEYS) * (len(KEYS) - 1) // 2
        return dict([*((p.a, p.in_a) for p in found), *((p.b, p.in_b) for p in found)]).items()

    def of_a_test_set() -> Iterable[tuple[str, int]]:
        ((_, words, coverage, keys, *_),) = corpus.contamination([("q", QUOTATION)])
        assert (words, coverage) == (9, 1.0)
        return [(key, versions.begun) for key in keys]

    readers = [
        Reader(versions, places)
        for places in (in_python, in_sql, of_a_key, of_all_pairs, of_a_test_set)
    ]
    deadline = time.monotonic() + PATIENCE_SECONDS
    with repeating(*(reader.read for reader in readers)):
        while versions.committed < VERSIONS or min(reader.reads for reader in readers) < READS:
            if time.monotonic() > deadline:
                break  # a reader has failed, or ended
            versions.write()
    assert min(reader.reads for reader in readers) >= READS
    assert corpus.check() == []
