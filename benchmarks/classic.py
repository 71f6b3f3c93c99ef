"""The classic exercise: 12,000 signatures of 100 values, 20 rows a band; from and to PostgreSQL.

    python -m benchmarks.classic [--documents 12000] [--hashes 100] [--rows 20]

The signatures are rows of a table. The first figure is the time to read them, compute all buckets, and
store and index the buckets. The second figure is the time to find the candidates of every document.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np
import psycopg

import textsim_db as ts
from benchmarks.generate import documents
from benchmarks.record import add_option, record
from textsim_db.db import array_dumper
from textsim_db.db.binary_rows import COPY_HEADER, COPY_TRAILER, copy_bands, load_int2_arrays
from textsim_db.settings import Bands, CorpusSettings
from textsim_db.sketch import band_buckets
from textsim_db.sketch.ragged import Ragged
from textsim_db.sketch.sketches import sketch
from textsim_db.write.band_rows import band_rows

Connection = psycopg.Connection[Any]

_CANDIDATES = """
SELECT x.document_id, array_agg(DISTINCT y.document_id)
FROM classic_band x JOIN classic_band y ON y.bucket = x.bucket AND y.document_id <> x.document_id
GROUP BY x.document_id
"""


def make_signatures(connection: Connection, count: int, hashes: int) -> None:
    """Store the signatures of documents; half of the documents are near-copies."""
    config = CorpusSettings(num_hashes=hashes, threshold=0.8).complete()
    texts = [text.encode() for _, text in documents(count, 100, planted=0.5)]
    made = sketch(texts, config).signatures
    connection.execute("DROP TABLE IF EXISTS classic_signature")
    connection.execute("CREATE TABLE classic_signature (id integer, signature smallint[])")
    with connection.cursor().copy("COPY classic_signature FROM STDIN (FORMAT binary)") as copy:
        copy.set_types(["int4", "int2[]"])
        for number, signature in enumerate(made.values.reshape(-1, hashes).tolist()):
            copy.write_row((number, signature))


def store_buckets(connection: Connection, banding: Bands) -> float:
    """Read the signatures, compute all buckets, store and index them; return the milliseconds."""
    connection.execute("DROP TABLE IF EXISTS classic_band")
    connection.execute("CREATE TABLE classic_band (bucket integer, document_id integer)")
    start = time.perf_counter()
    cursor = connection.cursor(binary=True)
    rows = cursor.execute("SELECT id, array_send(signature) FROM classic_signature").fetchall()
    values, offsets = load_int2_arrays([row[1] for row in rows])
    signatures = values.reshape(len(offsets) - 1, -1)
    buckets = band_buckets.buckets_of(Ragged(values, offsets), signatures.shape[1], banding)
    new_rows = band_rows(buckets, np.array([row[0] for row in rows], np.int64))
    with connection.transaction():
        with cursor.copy("COPY classic_band FROM STDIN (FORMAT binary)") as copy:
            copy.write(COPY_HEADER)
            copy.write(copy_bands(new_rows).data)
            copy.write(COPY_TRAILER)
        connection.execute("CREATE INDEX ON classic_band (bucket, document_id)")
    return (time.perf_counter() - start) * 1000


def find_candidates(connection: Connection) -> tuple[float, int]:
    """Find all candidates; return the milliseconds and the number of documents with candidates."""
    start = time.perf_counter()
    rows = connection.cursor(binary=True).execute(_CANDIDATES).fetchall()
    return (time.perf_counter() - start) * 1000, len(rows)


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--documents", type=int, default=12_000)
    parser.add_argument("--hashes", type=int, default=100)
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--database-url")
    add_option(parser)
    given = parser.parse_args()
    banding = Bands(given.hashes // given.rows, given.rows)
    with (
        ts.connect(given.database_url) as db,
        psycopg.connect(db.url, autocommit=True) as connection,
    ):
        array_dumper.register(connection)
        make_signatures(connection, given.documents, given.hashes)
        store_buckets(connection, banding)
        stored = [store_buckets(connection, banding) for _ in range(given.rounds)]
        found = [find_candidates(connection) for _ in range(given.rounds)]
        connection.execute("DROP TABLE classic_signature, classic_band")
    print(f"{given.documents:,} documents, {banding.bands} bands of {banding.rows} rows")
    print(f"all buckets, stored and indexed: {statistics.median(stored):.0f} ms")
    milliseconds = statistics.median(some for some, _ in found)
    print(f"candidates of every document: {milliseconds:.0f} ms ({found[0][1]:,} have candidates)")
    if given.record:
        figures = {"buckets_ms": statistics.median(stored), "candidates_ms": milliseconds}
        record("classic", figures, {})


if __name__ == "__main__":
    main()
