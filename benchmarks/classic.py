"""The classic exercise: 12,000 signatures of 100 values, 20 rows a band; from and to PostgreSQL.

    python -m benchmarks.classic [--documents 12000] [--hashes 100] [--rows 20]

The signatures are rows of a table. The first figure is the time to read them, compute all buckets, and
store and index the buckets. The second figure is the time to find the candidates of every document. Each
is the shortest and the longest time of the rounds.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.generate import documents
from benchmarks.harness import (
    Connection,
    fresh_database,
    in_turns,
    milliseconds,
    options,
    publish,
    span,
)
from textsim_db.choose_bands import Bands
from textsim_db.db import array_dumper
from textsim_db.db.binary_rows import COPY_HEADER, COPY_TRAILER, copy_bands, load_int2_arrays
from textsim_db.settings import CorpusSettings
from textsim_db.sketch.ragged import Ragged
from textsim_db.sketch.sketch_texts import buckets_in_bands, sketch
from textsim_db.write.band_rows import band_rows

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
    hashed = buckets_in_bands(signatures, banding)
    buckets = Ragged(hashed.ravel(), np.arange(len(hashed) + 1) * banding.bands)
    new_rows = band_rows(buckets, np.array([row[0] for row in rows], np.int64))
    with connection.transaction():
        with cursor.copy("COPY classic_band FROM STDIN (FORMAT binary)") as copy:
            copy.write(COPY_HEADER)
            copy.write(copy_bands(new_rows).data)
            copy.write(COPY_TRAILER)
        connection.execute("CREATE INDEX ON classic_band (bucket, document_id)")
    return (time.perf_counter() - start) * 1000


def find_candidates(connection: Connection) -> None:
    """Find the candidates of all documents."""
    connection.cursor(binary=True).execute(_CANDIDATES).fetchall()


def main() -> None:
    """Measure both in turns, and print a table."""
    given = options(__doc__, documents=12_000, hashes=100, rows=20, rounds=9).parse_args()
    banding = Bands(given.hashes // given.rows, given.rows)
    with fresh_database() as bench:
        array_dumper.register(bench.connection)
        make_signatures(bench.connection, given.documents, given.hashes)
        store_buckets(bench.connection, banding)
        steps = {
            "buckets_ms": lambda _: store_buckets(bench.connection, banding),
            "candidates_ms": lambda _: milliseconds(find_candidates, bench.connection),
        }
        figures = {name: span(times) for name, times in in_turns(steps, given.rounds).items()}
    title = f"{given.documents:,} documents, {banding.bands} bands of {banding.rows} rows"
    rows = [
        ["all buckets computed, stored and indexed, ms", figures["buckets_ms"]],
        ["the candidates of every document, ms", figures["candidates_ms"]],
    ]
    publish(given.record, "classic", figures, {"classic": [[title, ""], *rows]})


if __name__ == "__main__":
    main()
