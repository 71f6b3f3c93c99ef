"""Documents for corpora that are rebuilt, and the stored rows of a corpus."""

from __future__ import annotations

from typing import Any

import textsim_db as ts
from benchmarks.generate import documents

TEXTS = dict(documents(300, words=40, planted=0.3, seed=8))


def stored_rows(db: ts.Database, name: str) -> tuple[list[Any], list[Any]]:
    """Return all document and band rows of a corpus, without the ids that a rebuild renumbers."""
    with db.engine.connect() as connection:
        number = connection.exec_driver_sql(
            "SELECT id FROM textsim.corpus WHERE name = %s", (name,)
        ).scalar_one()
        rows = connection.exec_driver_sql(
            "SELECT key, source_id, shingle_count, scope, word_ids, signature, fingerprints, "
            f"normal_form FROM textsim.document_{number} ORDER BY key"
        ).all()
        bands = connection.exec_driver_sql(
            f"SELECT d.key, b.bucket FROM textsim.band_{number} b "
            f"LEFT JOIN textsim.document_{number} d ON d.id = b.document_id ORDER BY 1, 2"
        ).all()
    return [tuple(row) for row in rows], [tuple(row) for row in bands]
