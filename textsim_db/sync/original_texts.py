"""The texts of documents as the rows of attached tables have them."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import Error

from textsim_db.db.store import Store
from textsim_db.errors import DocumentNotFound
from textsim_db.read import documents_by_key
from textsim_db.sync.read_source import StoredSource, read_rows, readable_sources, reading


def sources_of(store: Store) -> list[StoredSource]:
    """Return the attached tables of a corpus that this role can read."""
    return readable_sources(store.engine, store.corpus.id)


def original_text(store: Store, key: str) -> str:
    """Return the text of a document of an attached table; raises DocumentNotFound."""
    texts = original_texts(store, sources_of(store), [key])
    if key not in texts:
        raise DocumentNotFound(f'no attached table of corpus "{store.corpus.name}" has "{key}"')
    return texts[key]


def original_texts(
    store: Store, sources: Sequence[StoredSource], keys: list[str]
) -> dict[str, str]:
    """Return the texts of the documents of these tables by key.

    A document has none if its table was altered, or is locked for long.
    """
    texts: dict[str, str] = {}
    if sources:
        traits = documents_by_key.traits(store, keys)
        for source in sources:
            own = [key for key, each in traits.items() if each.source_id == source.id]
            texts |= _texts_of_rows(store, source, own)
    return texts


def _texts_of_rows(store: Store, source: StoredSource, keys: list[str]) -> dict[str, str]:
    if not keys:
        return {}
    try:
        with reading(store.engine, source) as connection:
            rows = read_rows(connection, source, keys)
    except Error:
        return {}
    return {key: row.text for key, row in rows.items()}
