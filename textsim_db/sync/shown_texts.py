"""The texts of documents as people see them: those of attached tables, or else the normal forms."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from psycopg import Error

from textsim_db.db.store import Store
from textsim_db.errors import DocumentNotFound
from textsim_db.measures.word_diff import ShownText
from textsim_db.read import stored_documents
from textsim_db.sync.read_source import StoredSource, read_rows, reading, sources_of


def shown_texts(store: Store, keys: Sequence[str]) -> dict[str, ShownText]:
    """Return the texts of the documents that exist, by key."""
    originals = original_texts(store, sources_of(store), keys)
    texts = {key: ShownText(text, True) for key, text in originals.items()}
    rest = [key for key in keys if key not in texts]
    if rest:
        stored = stored_documents.forms(store, rest)
        texts |= {key: ShownText(form, False) for key, form in stored.items()}
    return texts


def original_text(store: Store, key: str) -> str:
    texts = original_texts(store, sources_of(store), [key])
    if key not in texts:
        raise DocumentNotFound(f'no attached table of corpus "{store.corpus.name}" has "{key}"')
    return texts[key]


def original_texts(
    store: Store, sources: Sequence[StoredSource], keys: Sequence[str]
) -> dict[str, str]:
    """Return the texts of documents by key; none if a table was altered, or is locked for long."""
    texts: dict[str, str] = {}
    traits = stored_documents.traits(store, keys) if sources else {}
    for source in sources:
        own = [key for key, each in traits.items() if each.source_id == source.id]
        with suppress(Error):
            with reading(store.engine, source) as connection:
                rows = read_rows(connection, source, own)
            texts |= {key: row.text for key, row in rows.items()}
    return texts
