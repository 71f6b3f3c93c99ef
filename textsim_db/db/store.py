"""Store: a stored corpus, with its engine and its dictionary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from textsim_db.db.dictionary import Dictionary
    from textsim_db.db.stored_corpus import StoredCorpus


@dataclass(frozen=True, slots=True)
class Store:
    """A stored corpus, the engine that connects to its database, and the database's dictionary."""

    engine: Engine
    dictionary: Dictionary
    corpus: StoredCorpus
