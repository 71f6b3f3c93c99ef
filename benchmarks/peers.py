"""The project and its peers behind one interface: index documents, then look texts up.

Each peer is called by the fastest way of its library that tells which documents are similar. Peers that
take shingles get the runs of three words as bytes. All peers that let us choose have the same bands and
rows.

`python -m benchmarks.peers NAME FOLDER URL DOCUMENTS` runs one of them in a process of its own, which
imports nothing else, so that its memory is measured alone. It prints a line before and after the load,
and then its figures as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

BANDS, ROWS, THRESHOLD = 18, 7, 0.8
HASHES = BANDS * ROWS
BATCH = 5_000
"""The documents whose shingles are in memory at once; a larger batch is no faster."""
Documents = Sequence[tuple[str, str]]


def word_trigrams(text: str) -> list[bytes]:
    """Return the shingles of three words; a repeated shingle comes again, and no peer minds."""
    words = text.lower().encode().split()
    return list(map(b" ".join, zip(words, words[1:], words[2:], strict=False)))


class Peer(ABC):
    """One library with an empty index; url: a fresh database."""

    package: str
    """The name under which it is installed."""
    load_calls: str
    search_calls: str
    """The calls that are measured, for a reader of the figures."""
    bands = f"{BANDS} x {ROWS}"
    """Bands and rows."""
    note = "in memory; candidates"
    """How durable its documents are, and the results of its searches."""
    most_documents = most_queries = sys.maxsize
    """The limits of a slow library."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.shingling = 0.0
        """The processor's seconds in which Python has made shingles."""

    def version(self) -> str:
        """Return the version of the library, and that of a server that it needs."""
        return version(self.package)

    @abstractmethod
    def index(self, documents: Documents) -> None:
        """Index documents, given as strings, in the fastest way of the library."""

    @abstractmethod
    def find(self, text: str) -> Sequence[str]:
        """Return the keys of the documents that the library finds for a text."""

    def find_many(self, texts: Sequence[str]) -> list[Sequence[str]]:
        """Return the keys for each of several texts, in the fastest way of the library."""
        return [self.find(text) for text in texts]

    def stored_bytes(self) -> int | None:
        """Return the bytes in the database, or None if the index is in memory."""
        return None

    def shingles(self, texts: Sequence[str]) -> list[list[bytes]]:
        """Return the shingles of each text, and note the time."""
        start = time.process_time()
        made = [word_trigrams(text) for text in texts]
        self.shingling += time.process_time() - start
        return made


class TextsimDb(Peer):
    """The project: durable, in PostgreSQL, verified."""

    package = "textsim-db"
    load_calls = "`add_many`"
    search_calls = "`query`, `query_many`"
    note = "durable; verified"
    settings: Mapping[str, Any] = {"bands": BANDS, "rows": ROWS}

    def __init__(self, url: str) -> None:
        super().__init__(url)
        from benchmarks.harness import open_bench

        self._opened = open_bench(url)
        self._bench = self._opened.__enter__()
        self._corpus = self._bench.db.create_corpus("peer", **self.settings)

    def version(self) -> str:
        import textsim_db  # the metadata of an editable installation may be of an older version

        server = self._bench.number("SHOW server_version").split()[0]
        return f"{textsim_db.__version__}, PostgreSQL {server}"

    def index(self, documents: Documents) -> None:
        self._corpus.add_many(documents)

    def find(self, text: str) -> Sequence[str]:
        return [match.key for match in self._corpus.query(text)]

    def find_many(self, texts: Sequence[str]) -> list[Sequence[str]]:
        return [[match.key for match in matches] for matches in self._corpus.query_many(texts)]

    def stored_bytes(self) -> int:
        return self._bench.stored_bytes("peer")


class TextsimDbExact(TextsimDb):
    """The project with an exact corpus."""

    bands = "exact"
    note = "durable; verified; every match"
    settings: Mapping[str, Any] = {"recall": 1.0}


class Datasketch(Peer):
    """datasketch's MinHashLSH, with the reused state of 2.0 and a fast hash function."""

    package = "datasketch"
    load_calls = "`MinHash.generator` with xxhash, `MinHashLSH.insert`"
    search_calls = "`query`"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        from datasketch import MinHash, MinHashLSH
        from xxhash import xxh32_intdigest

        self._generator, self._hash = MinHash.generator, xxh32_intdigest
        self._lsh = MinHashLSH(num_perm=HASHES, params=(BANDS, ROWS))

    def _signatures(self, texts: Sequence[str]) -> Iterator[Any]:
        shingles = self.shingles(texts)
        return self._generator(shingles, num_perm=HASHES, hashfunc=self._hash)  # type: ignore[no-any-return]

    def index(self, documents: Documents) -> None:
        for batch in batches(documents):
            keys, texts = zip(*batch, strict=True)
            for key, signature in zip(keys, self._signatures(texts), strict=True):
                self._lsh.insert(key, signature, check_duplication=False)

    def find(self, text: str) -> Sequence[str]:
        return self.find_many([text])[0]

    def find_many(self, texts: Sequence[str]) -> list[Sequence[str]]:
        return [
            self._lsh.query(signature)
            for batch in batches(texts)
            for signature in self._signatures(batch)
        ]


class Numbering(Peer):
    """A library in which a document has its number as its key."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._keys: list[str] = []

    def _named(self, found: Sequence[Sequence[int]]) -> list[Sequence[str]]:
        return [[self._keys[number] for number in numbers] for numbers in found]


class Rensa(Numbering):
    """rensa's R-MinHash, which is fast similarity sketching, as matrices."""

    package = "rensa"
    load_calls = "`RMinHash.digest_matrix_from_token_sets`, `RMinHashLSH.insert_matrix`"
    search_calls = "`query`, `query_all` of `RMinHash.from_token_sets`"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        from rensa import RMinHash, RMinHashLSH

        self._minhash = RMinHash
        self._lsh = RMinHashLSH(threshold=THRESHOLD, num_perm=HASHES, num_bands=BANDS)

    def index(self, documents: Documents) -> None:
        for batch in batches(documents):
            shingles = self.shingles([text for _, text in batch])
            matrix = self._minhash.digest_matrix_from_token_sets(shingles, HASHES, 1)
            self._lsh.insert_matrix(matrix, len(self._keys))
            self._keys += [key for key, _ in batch]

    def find(self, text: str) -> Sequence[str]:
        signature = self._minhash(HASHES, 1)
        signature.update(word_trigrams(text))
        return self._named([self._lsh.query(signature)])[0]

    def find_many(self, texts: Sequence[str]) -> list[Sequence[str]]:
        found: list[Sequence[int]] = []
        for batch in batches(texts):
            signatures = self._minhash.from_token_sets(self.shingles(batch), HASHES, 1)
            found += self._lsh.query_all(signatures)
        return self._named(found)


class FastSketchLsh(Numbering):
    """FastSketchLSH: fast similarity sketching with SIMD; its sketches have a power of two of values."""

    package = "FastSketchLSH"
    load_calls = "`FastSimilaritySketch.batch`, `LSH.insert`"
    search_calls = "`LSH.query`"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        import numpy as np
        from FastSketchLSH import LSH, FastSimilaritySketch

        self._numpy = np
        self._sketch = FastSimilaritySketch(size=128, seed=1)
        self._lsh = LSH(num_perm=HASHES, num_bands=BANDS)

    def _sketches(self, texts: Sequence[str]) -> Any:
        sketches = self._sketch.batch(self.shingles(texts))
        return self._numpy.ascontiguousarray(sketches[:, :HASHES])

    def index(self, documents: Documents) -> None:
        for batch in batches(documents):
            self._lsh.insert(self._sketches([text for _, text in batch]))
            self._keys += [key for key, _ in batch]

    def find(self, text: str) -> Sequence[str]:
        sketch = self._numpy.array(self._sketch(word_trigrams(text))[:HASHES], "uint64")
        return self._named([self._lsh.query(sketch)])[0]

    def find_many(self, texts: Sequence[str]) -> list[Sequence[str]]:
        found: list[Sequence[int]] = []
        for batch in batches(texts):
            found += self._lsh.query(self._sketches(batch))
        return self._named(found)


class Gaoya(Numbering):
    """gaoya's MinHashStringIndex: shingles and signatures in Rust, on all cores."""

    package = "gaoya"
    load_calls = "`par_bulk_insert_docs`, ids in `smallvec`"
    search_calls = "`query`, `par_bulk_query`"
    note = "in memory; estimates"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        from gaoya.minhash import MinHashStringIndex

        self._index = MinHashStringIndex(
            hash_size=32,
            jaccard_threshold=THRESHOLD,
            num_bands=BANDS,
            band_size=ROWS,
            num_hashes=HASHES,
            analyzer="word",
            lowercase=True,
            ngram_range=(3, 3),
            id_container="smallvec",
        )

    def index(self, documents: Documents) -> None:
        self._keys = [key for key, _ in documents]
        texts = [text for _, text in documents]
        self._index.par_bulk_insert_docs(list(range(len(texts))), texts)

    def find(self, text: str) -> Sequence[str]:
        return self._named([self._index.query(text)])[0]

    def find_many(self, texts: Sequence[str]) -> list[Sequence[str]]:
        return self._named(self._index.par_bulk_query(list(texts)))


class DedupPg(Peer):
    """dedup-pg on the same server: it joins a text to the first cluster that shares a band."""

    package = "dedup-pg"
    load_calls = "`DedupIndex.query` with the backend of SQLAlchemy"
    search_calls = "`DedupIndex.query`"
    note = "PostgreSQL; clusters"
    most_documents, most_queries = 10_000, 5_000

    def __init__(self, url: str) -> None:
        super().__init__(url)
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
        self._index = DedupIndex(backend, num_perms=HASHES, rows=ROWS)
        self._clusters: dict[object, list[str]] = {}

    def _value(self, statement: str) -> Any:
        with self._engine.connect() as connection:
            return connection.exec_driver_sql(statement).scalar_one()

    def version(self) -> str:
        return f"{super().version()}, PostgreSQL {self._value('SHOW server_version').split()[0]}"

    def _cluster(self, text: str) -> object:
        return self._index.query(self.shingles([text])[0])

    def index(self, documents: Documents) -> None:
        for key, text in documents:
            self._clusters.setdefault(self._cluster(text), []).append(key)

    def find(self, text: str) -> Sequence[str]:
        return self._clusters.get(self._cluster(text), [])

    def stored_bytes(self) -> int:
        return int(self._value("SELECT pg_total_relation_size('dedup_pg')"))


class PgTrgm(Peer):
    """PostgreSQL's pg_trgm with a GiST index, which answers sooner than GIN for whole texts."""

    package = "pg_trgm"
    load_calls = "`COPY`, `CREATE INDEX USING gist (body gist_trgm_ops)`"
    search_calls = "`body % text`"
    bands = ""
    note = "PostgreSQL; trigrams of characters"
    most_documents, most_queries = 10_000, 500

    def __init__(self, url: str) -> None:
        super().__init__(url)
        import psycopg

        self._connection = psycopg.connect(url, autocommit=True)
        self._value("CREATE EXTENSION pg_trgm")
        self._value("CREATE TABLE document (key text PRIMARY KEY, body text)")
        self._value(f"SET pg_trgm.similarity_threshold = {THRESHOLD}")

    def _value(self, statement: str) -> Any:
        cursor = self._connection.execute(statement.encode())
        return cursor.fetchone()[0] if cursor.description else None  # type: ignore[index]

    def version(self) -> str:
        extension = "SELECT extversion FROM pg_extension WHERE extname = 'pg_trgm'"
        server = self._value("SHOW server_version").split()[0]
        return f"{self._value(extension)}, PostgreSQL {server}"

    def index(self, documents: Documents) -> None:
        with self._connection.cursor().copy(b"COPY document FROM STDIN") as copy:
            for document in documents:
                copy.write_row(document)
        self._value("CREATE INDEX ON document USING gist (body gist_trgm_ops)")
        self._value("ANALYZE document")

    def find(self, text: str) -> Sequence[str]:
        statement = b"SELECT key FROM document WHERE body %% %s"
        return [key for (key,) in self._connection.execute(statement, [text])]

    def stored_bytes(self) -> int:
        return int(self._value("SELECT pg_total_relation_size('document')"))


PEERS: dict[str, type[Peer]] = {
    "textsim-db": TextsimDb,
    "textsim-db, recall 1": TextsimDbExact,
    "datasketch": Datasketch,
    "rensa": Rensa,
    "FastSketchLSH": FastSketchLsh,
    "gaoya": Gaoya,
    "dedup-pg": DedupPg,
    "pg_trgm": PgTrgm,
}


def batches(items: Sequence[Any]) -> Iterator[Any]:
    """Yield slices of at most BATCH items."""
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]


def status_kilobytes(field: str) -> int:
    """Return a field of the status of this process, such as VmRSS."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    (line,) = (line for line in lines if line.startswith(field))
    return int(line.split()[1])


def main() -> None:
    """Index the first documents of a folder, look texts up one by one and together, print figures."""
    name, folder, url, limit = sys.argv[1:]
    with Path(folder, "documents").open(encoding="utf-8") as file:
        documents: list[tuple[str, str]] = [tuple(json.loads(line)) for line in file][: int(limit)]
    singles, many = json.loads(Path(folder, "queries").read_text(encoding="utf-8"))
    texts = dict(documents)
    try:
        peer = PEERS[name](url)
    except Exception as error:  # not installed, or not on this server
        print(json.dumps({"missing": f"not measured: {str(error).splitlines()[0]}"}))
        return
    print("ready", flush=True)
    before, start, processor = status_kilobytes("VmRSS"), time.perf_counter(), time.process_time()
    peer.index(documents)
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    print("indexed", flush=True)
    shingling, stored = peer.shingling, peer.stored_bytes()
    grown = 1024 * (status_kilobytes("VmRSS") - before)
    for key in singles[:20]:
        peer.find(texts[key])
    times = []
    for key in singles:
        start = time.perf_counter()
        peer.find(texts[key])
        times.append(1000 * (time.perf_counter() - start))
    start = time.perf_counter()
    found = peer.find_many([texts[key] for key in many])
    together = time.perf_counter() - start
    figures = {
        "version": peer.version(),
        "documents": len(documents),
        "rate": len(documents) / seconds,
        "processor": 1e6 * processor / len(documents),
        "shingling": 1e6 * shingling / len(documents) if shingling else None,
        "peak": status_kilobytes("VmHWM") / 1024,
        "bytes": (grown if stored is None else stored) / len(documents),
        "times": times,
        "together": len(many) / together,
        "found": [list(keys) for keys in found],
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
