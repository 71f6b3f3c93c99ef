"""spark: DataFrames in; pairs, clusters and duplicates out, the same as a corpus finds.

Tasks send messages of packed numbers, and only the texts of candidates are sent. write() and read()
move documents between DataFrames and a corpus of PostgreSQL.
Never sends a row for each bucket, and never attaches sets or signatures to rows.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textsim_db.spark.candidates import (
        Candidates,
        clusters,
        dedupe,
        duplicates,
        find_candidates,
        pairs,
    )
    from textsim_db.spark.passage_pairs import shared_passages
    from textsim_db.spark.read_corpus import read
    from textsim_db.spark.row_keys import join_key, split_key
    from textsim_db.spark.write_corpus import write

__all__ = [
    "Candidates",
    "clusters",
    "dedupe",
    "duplicates",
    "find_candidates",
    "join_key",
    "pairs",
    "read",
    "shared_passages",
    "split_key",
    "write",
]

# Imported when first used: a task imports modules of this package, but not PySpark's DataFrames.
_LAZY = dict.fromkeys(__all__, "textsim_db.spark.candidates") | {
    "join_key": "textsim_db.spark.row_keys",
    "read": "textsim_db.spark.read_corpus",
    "shared_passages": "textsim_db.spark.passage_pairs",
    "split_key": "textsim_db.spark.row_keys",
    "write": "textsim_db.spark.write_corpus",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
