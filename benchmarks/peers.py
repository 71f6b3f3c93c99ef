"""The project and its peers behind one interface: index documents, then look texts up.

Peers get the same shingles of three words, and the same bands and rows if their interface accepts them.
Each runs in a process of its own, `python -m benchmarks.peers NAME FOLDER URL DOCUMENTS QUERIES`, which
imports nothing else, so that its memory is measured alone. It prints its figures as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

BANDS, ROWS, HASHES, THRESHOLD = 18, 7, 128, 0.8


def word_trigrams(text: str) -> list[str]:
    """Return the shingles of three words, as most peers expect them."""
    words = text.lower().split()
    if len(words) < 3:
        return [" ".join(words)] if words else []
    return list({" ".join(words[i : i + 3]) for i in range(len(words) - 2)})


class Peer(ABC):
    """One library with an empty index, and a note that explains its figures; url: a fresh database."""

    note = "in memory; candidates"
    slow = False

    def __init__(self, url: str) -> None:
        self.url = url

    @abstractmethod
    def index(self, documents: list[tuple[str, str]]) -> None:
        """Index documents, given as strings."""

    @abstractmethod
    def find(self, text: str) -> Sequence[str]:
        """Return the keys of the documents that the library finds for a text."""

    def find_many(self, texts: list[str]) -> None:
        """Look up several texts in the fastest way of the library."""
        for text in texts:
            self.find(text)

    def stored_bytes(self) -> int | None:
        """Return the bytes in the database, or None if the index is in memory."""
        return None


class TextsimDb(Peer):
    """The project: durable, in PostgreSQL, verified."""

    note = "durable; verified matches"

    def __init__(self, url: str) -> None:
        from benchmarks.harness import open_bench

        self._opened = open_bench(url)
        self._bench = self._opened.__enter__()
        self._corpus = self._bench.db.create_corpus("peer", bands=BANDS, rows=ROWS)

    def index(self, documents: list[tuple[str, str]]) -> None:
        self._corpus.add_many(documents)

    def find(self, text: str) -> Sequence[str]:
        return [match.key for match in self._corpus.query(text)]

    def find_many(self, texts: list[str]) -> None:
        self._corpus.query_many(texts)

    def stored_bytes(self) -> int:
        return self._bench.stored_bytes("peer")


class Datasketch(Peer):
    """datasketch's MinHashLSH with the same bands and rows."""

    def __init__(self, url: str) -> None:
        from datasketch import MinHash, MinHashLSH

        self._minhash = MinHash
        self._lsh = MinHashLSH(num_perm=HASHES, params=(BANDS, ROWS))

    def _signature(self, text: str) -> Any:
        made = self._minhash(num_perm=HASHES)
        made.update_batch([shingle.encode() for shingle in word_trigrams(text)])
        return made

    def index(self, documents: list[tuple[str, str]]) -> None:
        for key, text in documents:
            self._lsh.insert(key, self._signature(text), check_duplication=False)

    def find(self, text: str) -> Sequence[str]:
        found: list[str] = self._lsh.query(self._signature(text))
        return found


class Rensa(Peer):
    """rensa's RMinHash and RMinHashLSH: 16 bands of 8, because bands must divide the hashes."""

    note = "in memory; candidates; 16 bands of 8 rows"

    def __init__(self, url: str) -> None:
        from rensa import RMinHash, RMinHashLSH

        self._minhash = RMinHash
        self._lsh = RMinHashLSH(threshold=THRESHOLD, num_perm=HASHES, num_bands=16)
        self._keys: list[str] = []

    def _signature(self, text: str) -> Any:
        made = self._minhash(num_perm=HASHES, seed=1)
        made.update(word_trigrams(text))
        return made

    def index(self, documents: list[tuple[str, str]]) -> None:
        for key, text in documents:
            self._lsh.insert(len(self._keys), self._signature(text))
            self._keys.append(key)

    def find(self, text: str) -> Sequence[str]:
        return [self._keys[number] for number in self._lsh.query(self._signature(text))]


class Gaoya(Peer):
    """gaoya's MinHashStringIndex: shingles and signatures in Rust, on all cores."""

    note = "in memory; matches by estimate"

    def __init__(self, url: str) -> None:
        from gaoya.minhash import MinHashStringIndex

        self._index = MinHashStringIndex(
            hash_size=32,
            jaccard_threshold=THRESHOLD,
            num_bands=BANDS,
            band_size=ROWS,
            num_hashes=BANDS * ROWS,
            analyzer="word",
            lowercase=True,
            ngram_range=(3, 3),
        )
        self._keys: list[str] = []

    def index(self, documents: list[tuple[str, str]]) -> None:
        self._keys = [key for key, _ in documents]
        texts = [text for _, text in documents]
        self._index.par_bulk_insert_docs(list(range(len(texts))), texts)

    def find(self, text: str) -> Sequence[str]:
        return [self._keys[number] for number in self._index.query(text)]

    def find_many(self, texts: list[str]) -> None:
        self._index.par_bulk_query(texts)


class DedupPg(Peer):
    """dedup-pg on the same server: it joins a text to the first cluster that shares a band."""

    note = "PostgreSQL, commits not waited for; clusters by any shared band; a look-up inserts"
    slow = True

    def __init__(self, url: str) -> None:
        import sqlalchemy
        from dedup_pg import DedupIndex
        from dedup_pg.backend.sqlalchemy import SQLAlchemyBackend

        address = url.replace("postgresql://", "postgresql+psycopg2://")
        self._engine = sqlalchemy.create_engine(address)
        metadata = sqlalchemy.MetaData()
        backend = SQLAlchemyBackend(
            engine=self._engine, base_or_metadata=metadata, table_name="dedup_pg"
        )
        metadata.create_all(self._engine)
        self._index = DedupIndex(backend, num_perms=BANDS * ROWS, rows=ROWS)
        self._clusters: dict[object, list[str]] = {}

    def _cluster(self, text: str) -> object:
        return self._index.query([shingle.encode() for shingle in word_trigrams(text)])

    def index(self, documents: list[tuple[str, str]]) -> None:
        for key, text in documents:
            self._clusters.setdefault(self._cluster(text), []).append(key)

    def find(self, text: str) -> Sequence[str]:
        return self._clusters.get(self._cluster(text), [])

    def stored_bytes(self) -> int:
        with self._engine.connect() as connection:
            statement = "SELECT pg_total_relation_size('dedup_pg')"
            return int(connection.exec_driver_sql(statement).scalar_one())


PEERS: dict[str, type[Peer]] = {
    "textsim-db": TextsimDb,
    "datasketch": Datasketch,
    "rensa": Rensa,
    "gaoya": Gaoya,
    "dedup-pg": DedupPg,
}


def status_kilobytes(field: str) -> int:
    """Return a field of the status of this process, such as VmRSS."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    (line,) = (line for line in lines if line.startswith(field))
    return int(line.split()[1])


def main() -> None:
    """Index the first documents of a folder, look some of them up, and print the figures."""
    name, folder, url, limit, queries = sys.argv[1:]
    with Path(folder, "documents").open(encoding="utf-8") as file:
        documents: list[tuple[str, str]] = [tuple(json.loads(line)) for line in file][: int(limit)]
    asked = json.loads(Path(folder, "queries").read_text(encoding="utf-8"))[: int(queries)]
    texts = dict(documents)
    peer = PEERS[name](url)
    before, start = status_kilobytes("VmRSS"), time.perf_counter()
    peer.index(documents)
    seconds = time.perf_counter() - start
    grown, stored = 1024 * (status_kilobytes("VmRSS") - before), peer.stored_bytes()
    for key in asked[:20]:
        peer.find(texts[key])
    found, times = {}, []
    for key in asked:
        start = time.perf_counter()
        found[key] = list(peer.find(texts[key]))
        times.append(1000 * (time.perf_counter() - start))
    start = time.perf_counter()
    peer.find_many([texts[key] for key in asked])
    together = time.perf_counter() - start
    figures = {
        "documents": len(documents),
        "rate": len(documents) / seconds,
        "peak": status_kilobytes("VmHWM") / 1024,
        "bytes": (grown if stored is None else stored) / len(documents),
        "times": times,
        "together": len(asked) / together,
        "found": found,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
