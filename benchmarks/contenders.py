"""The project and its peers behind one interface: index documents, then look texts up.

Each runs in its own process, `python -m benchmarks.contenders NAME FOLDER`, so that its peak memory is
measured alone. It prints its figures as JSON. Peers get the same shingles of three words, and the same
bands and rows if their interface accepts them.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

BANDS, ROWS, HASHES, THRESHOLD = 18, 7, 128, 0.8
Documents = list[tuple[str, str]]


def word_trigrams(text: str) -> list[str]:
    """Return the shingles of three words, as most peers expect them."""
    words = text.lower().split()
    if len(words) < 3:
        return [" ".join(words)] if words else []
    return list({" ".join(words[i : i + 3]) for i in range(len(words) - 2)})


class Contender(ABC):
    """One library, with a note that explains its figures."""

    note = ""
    slow = False

    def __init__(self, url: str) -> None:
        self.url = url

    @abstractmethod
    def index(self, documents: Documents) -> None:
        """Index documents, given as strings."""

    @abstractmethod
    def find(self, text: str) -> Sequence[str]:
        """Return the keys of the documents that the contender finds for a text."""

    def find_many(self, texts: list[str]) -> None:
        """Look up several texts in the fastest way of the library."""
        for text in texts:
            self.find(text)

    def stored_bytes(self) -> int | None:
        """Return the bytes in the database, or None if the index is in memory."""
        return None

    def close(self) -> None:  # noqa: B027 - an index in memory has nothing to remove
        """Remove the stored documents."""


class TextsimDb(Contender):
    """The project: durable, in PostgreSQL, verified."""

    note = "durable; verified matches"

    def index(self, documents: Documents) -> None:
        self._corpus.add_many(documents)

    def __init__(self, url: str) -> None:
        import textsim_db as ts

        super().__init__(url)
        self._db = ts.connect(url)
        warm = self._db.create_corpus("benchmark warm-up", exist_ok=True)
        warm.add_many([("a", "some words to load the kernels"), ("b", "")])
        warm.query_many(["some words to load the kernels"])
        warm.drop()
        if "benchmark" in self._db.corpora():
            self._db.drop_corpus("benchmark")
        self._corpus = self._db.create_corpus("benchmark", bands=BANDS, rows=ROWS)

    def find(self, text: str) -> Sequence[str]:
        return [match.key for match in self._corpus.query(text)]

    def find_many(self, texts: list[str]) -> None:
        self._corpus.query_many(texts)

    def stored_bytes(self) -> int:
        import psycopg

        from benchmarks.against_side import stored_bytes

        with psycopg.connect(self._db.url) as connection:
            return stored_bytes(connection, "benchmark")

    def close(self) -> None:
        self._corpus.drop()
        self._db.close()


class Datasketch(Contender):
    """datasketch's MinHashLSH with the same bands and rows."""

    note = "in memory; candidates"

    def __init__(self, url: str) -> None:
        from datasketch import MinHash, MinHashLSH

        super().__init__(url)
        self._minhash = MinHash
        self._lsh = MinHashLSH(num_perm=HASHES, params=(BANDS, ROWS))

    def _signature(self, text: str) -> Any:
        made = self._minhash(num_perm=HASHES)
        made.update_batch([shingle.encode() for shingle in word_trigrams(text)])
        return made

    def index(self, documents: Documents) -> None:
        for key, text in documents:
            self._lsh.insert(key, self._signature(text), check_duplication=False)

    def find(self, text: str) -> Sequence[str]:
        found: list[str] = self._lsh.query(self._signature(text))
        return found


class Rensa(Contender):
    """rensa's RMinHash and RMinHashLSH: 16 bands of 8, because bands must divide the hashes."""

    note = "in memory; candidates; 16 bands of 8 rows"

    def __init__(self, url: str) -> None:
        from rensa import RMinHash, RMinHashLSH

        super().__init__(url)
        self._minhash = RMinHash
        self._lsh = RMinHashLSH(threshold=THRESHOLD, num_perm=HASHES, num_bands=16)
        self._keys: list[str] = []

    def _signature(self, text: str) -> Any:
        made = self._minhash(num_perm=HASHES, seed=1)
        made.update(word_trigrams(text))
        return made

    def index(self, documents: Documents) -> None:
        for key, text in documents:
            self._lsh.insert(len(self._keys), self._signature(text))
            self._keys.append(key)

    def find(self, text: str) -> Sequence[str]:
        return [self._keys[number] for number in self._lsh.query(self._signature(text))]


class Gaoya(Contender):
    """gaoya's MinHashStringIndex: shingles and signatures in Rust, on all cores."""

    note = "in memory; matches by estimate"

    def __init__(self, url: str) -> None:
        from gaoya.minhash import MinHashStringIndex

        super().__init__(url)
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

    def index(self, documents: Documents) -> None:
        self._keys = [key for key, _ in documents]
        texts = [text for _, text in documents]
        self._index.par_bulk_insert_docs(list(range(len(texts))), texts)

    def find(self, text: str) -> Sequence[str]:
        return [self._keys[number] for number in self._index.query(text)]

    def find_many(self, texts: list[str]) -> None:
        self._index.par_bulk_query(texts)


class DedupPg(Contender):
    """dedup-pg on the same server: it joins a text to the first cluster that shares a band."""

    note = "PostgreSQL, asynchronous commits; clusters by any shared band; a look-up inserts"
    slow = True

    def __init__(self, url: str) -> None:
        import sqlalchemy
        from dedup_pg import DedupIndex
        from dedup_pg.backend.sqlalchemy import SQLAlchemyBackend

        super().__init__(url)
        address = url.replace("postgresql://", "postgresql+psycopg2://")
        self._engine = sqlalchemy.create_engine(address)
        metadata = sqlalchemy.MetaData()
        backend = SQLAlchemyBackend(
            engine=self._engine, base_or_metadata=metadata, table_name="benchmark_dedup_pg"
        )
        metadata.drop_all(self._engine)
        metadata.create_all(self._engine)
        self._metadata = metadata
        self._index = DedupIndex(backend, num_perms=BANDS * ROWS, rows=ROWS)
        self._clusters: dict[object, list[str]] = {}

    @staticmethod
    def _tokens(text: str) -> list[bytes]:
        return [shingle.encode() for shingle in word_trigrams(text)]

    def index(self, documents: Documents) -> None:
        for key, text in documents:
            self._clusters.setdefault(self._index.query(self._tokens(text)), []).append(key)

    def find(self, text: str) -> Sequence[str]:
        return self._clusters.get(self._index.query(self._tokens(text)), [])

    def stored_bytes(self) -> int:
        with self._engine.connect() as connection:
            statement = "SELECT pg_total_relation_size('benchmark_dedup_pg')"
            return int(connection.exec_driver_sql(statement).scalar_one())

    def close(self) -> None:
        self._metadata.drop_all(self._engine)
        self._engine.dispose()


class PgTrgm(Contender):
    """A GIN index of pg_trgm: the similarity of sets of character trigrams, not of words."""

    note = "PostgreSQL's contrib; another measure: character trigrams"
    slow = True

    def __init__(self, url: str) -> None:
        import psycopg

        super().__init__(url)
        self._connection = psycopg.connect(url, autocommit=True)
        try:
            self._connection.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
        except psycopg.Error as error:
            raise ImportError("the server has no pg_trgm") from error
        self._connection.execute(f"SET pg_trgm.similarity_threshold = {THRESHOLD}")
        self._connection.execute("DROP TABLE IF EXISTS benchmark_trgm")
        self._connection.execute("CREATE TABLE benchmark_trgm (key text, body text)")

    def index(self, documents: Documents) -> None:
        with self._connection.cursor().copy("COPY benchmark_trgm FROM STDIN") as copy:
            for row in documents:
                copy.write_row(row)
        self._connection.execute("CREATE INDEX ON benchmark_trgm USING gin (body gin_trgm_ops)")
        self._connection.execute("VACUUM ANALYZE benchmark_trgm")

    def find(self, text: str) -> Sequence[str]:
        statement = "SELECT key FROM benchmark_trgm WHERE body %% %s"
        return [key for (key,) in self._connection.execute(statement, [text])]

    def stored_bytes(self) -> int:
        row = self._connection.execute("SELECT pg_total_relation_size('benchmark_trgm')").fetchone()
        assert row is not None
        return int(row[0])

    def close(self) -> None:
        self._connection.execute("DROP TABLE benchmark_trgm")
        self._connection.close()


CONTENDERS: dict[str, type[Contender]] = {
    "textsim-db": TextsimDb,
    "datasketch": Datasketch,
    "rensa": Rensa,
    "gaoya": Gaoya,
    "dedup-pg": DedupPg,
    "pg_trgm": PgTrgm,
}


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak() -> float:
    """Return the peak resident memory of this process in MB; ru_maxrss would include the parent's."""
    with Path("/proc/self/status").open() as file:
        line = next(line for line in file if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def measure(name: str, folder: Path, limit: int, queries: int) -> dict[str, Any]:
    """Run one contender on the documents of a folder and return its figures."""
    documents: Documents = [tuple(json.loads(line)) for line in (folder / "documents").open()][
        :limit
    ]
    asked = json.loads((folder / "queries").read_text())[:queries]
    texts = dict(documents)
    contender = CONTENDERS[name](os.environ["BENCHMARK_URL"])
    before = resident()
    start = time.perf_counter()
    contender.index(documents)
    seconds = time.perf_counter() - start
    grown = resident() - before
    for key in asked[:20]:
        contender.find(texts[key])
    times = []
    found = {}
    for key in asked:
        begin = time.perf_counter()
        found[key] = list(contender.find(texts[key]))
        times.append(1000 * (time.perf_counter() - begin))
    begin = time.perf_counter()
    contender.find_many([texts[key] for key in asked])
    together = len(asked) / (time.perf_counter() - begin)
    stored = contender.stored_bytes()
    contender.close()
    return {
        "documents": len(documents),
        "rate": len(documents) / seconds,
        "peak": peak(),
        "bytes": (grown if stored is None else stored) / len(documents),
        "median": statistics.median(times),
        "p99": sorted(times)[int(len(times) * 0.99)],
        "together": together,
        "found": found,
    }


def main() -> None:
    """Measure one contender; if its library is missing, report that."""
    name, folder, limit, queries = sys.argv[1:5]
    try:
        figures = measure(name, Path(folder), int(limit), int(queries))
    except ImportError as error:
        figures = {"missing": str(error)}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
