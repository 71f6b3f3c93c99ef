"""Documents for corpora that are rebuilt, and the stored rows of a corpus."""

from __future__ import annotations

from typing import Any

import textsim_db as ts
from benchmarks.generate import documents
from textsim_db.db import stored_corpus

TEXTS = dict(documents(300, words=40, planted=0.3, seed=8))


def stored_rows(db: ts.Database, name: str) -> list[list[Any]]:
    """Return all documents, band rows and fingerprints of a corpus, with words in the place of ids."""
    corpus = stored_corpus.load(db.engine, name)
    number, tables = corpus.id, [("band", "bucket")]
    if corpus.config.passages is not None:
        tables.append(("passage", "fingerprint"))
    with db.engine.connect() as connection:
        rows = connection.exec_driver_sql(
            "SELECT key, source_id, shingle_count, scope, guard, array(SELECT w.word "
            "FROM unnest(word_ids) WITH ORDINALITY u (id, place) "
            f"JOIN textsim.word_{number} w USING (id) ORDER BY u.place), "
            "signature, fingerprints, normal_form "
            f"FROM textsim.document_{number} ORDER BY key"
        ).all()
        tables_of_rows = [
            connection.exec_driver_sql(
                f"SELECT d.key, r.{column} FROM textsim.{table}_{number} r "
                f"LEFT JOIN textsim.document_{number} d ON d.id = r.document_id ORDER BY 1, 2"
            ).all()
            for table, column in tables
        ]
    return [[tuple(row) for row in each] for each in (rows, *tables_of_rows)]
