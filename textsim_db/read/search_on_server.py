"""Searches of one text that the server computes, equal to those of search.py, without NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, LiteralString

import psycopg

from textsim_db.db.engine import configuration_errors, read_rows
from textsim_db.db.store import Store
from textsim_db.errors import ConfigurationError, DocumentNotFound
from textsim_db.read import statements
from textsim_db.results import Distinct, Match
from textsim_db.settings.corpus_settings import CorpusConfig
from textsim_db.text.storable import to_bytes

if TYPE_CHECKING:
    from textsim_db.measures.explanation import Side

MOST_CHARACTERS = 20_000
"""The kernels are loaded for a longer text: from there on the server takes longer than they do."""


def is_possible(
    config: CorpusConfig, text: str, threshold: float | None, measure: str = "jaccard"
) -> bool:
    """Say whether the server finds the same as the kernels, without a warning of missed documents."""
    return (
        measure == "jaccard"
        and (threshold is None or threshold >= config.threshold)
        and config.many_missed(threshold) is None
        and config.language is None
        and len(text) <= MOST_CHARACTERS
    )


def query(
    store: Store, text: str, threshold: float | None, most: int | None, scope: str | None
) -> list[Match]:
    to_bytes(text)
    parameters = [store.corpus.name, text, threshold, most, scope]
    return _matches(store, statements.QUERY_ON_SERVER, parameters)


def nearest(store: Store, text: str, count: int, scope: str | None) -> list[Match]:
    """Return the documents that are most similar to a text, best first."""
    to_bytes(text)
    parameters = [store.corpus.name, text, count, scope]
    return _matches(store, statements.NEAREST_ON_SERVER, parameters)


def check_nearest(store: Store, scope: str | None) -> None:
    """Raise ConfigurationError if a corpus is not exact, and too large to compare all documents."""
    if store.corpus.config.is_exact:
        return
    if not store.read(statements.COMPARES_ALL, [scope])[0][0]:
        raise ConfigurationError(
            f'corpus "{store.corpus.name}" is not exact: its bands find no documents far below its '
            "threshold, and it has too many documents to compare all with the text; for the nearest, "
            "make one with recall=1 and a threshold of 0.5 or less"
        )


def neighbours(store: Store, key: str, threshold: float | None, most: int | None) -> list[Match]:
    """Return the matches of an indexed document, without itself; raises DocumentNotFound."""
    if not store.read(statements.HAS_DOCUMENT, [key])[0][0]:
        raise DocumentNotFound(f'corpus "{store.corpus.name}" has no document "{key[:100]}"')
    parameters = [store.corpus.name, key, threshold, most]
    return _matches(store, statements.NEIGHBOURS_ON_SERVER, parameters)


def distinct(
    store: Store,
    keys: Sequence[str],
    most: int | None,
    threshold: float | None,
    guards: bool,
    missing: str,
) -> list[Distinct[str]]:
    """Return the documents of keys without copies; raises DocumentNotFound."""
    parameters = [store.corpus.name, list(keys), most, threshold, guards, missing]
    try:
        with configuration_errors(psycopg.errors.InvalidParameterValue):
            rows = read_rows(store.engine, statements.DISTINCT_ON_SERVER, parameters)
    except psycopg.errors.NoDataFound as error:
        raise DocumentNotFound(error.diag.message_primary or str(error)) from error
    return [Distinct(key, rank, tuple(copies)) for key, rank, copies in rows]


def side_of(store: Store, key: str) -> Side | None:
    """Return a document as explain_sides() takes it, or None if it is long; raises DocumentNotFound."""
    rows = store.read(statements.SIDE_ON_SERVER, [key, MOST_CHARACTERS])
    if not rows:
        raise DocumentNotFound(f'corpus "{store.corpus.name}" has no document "{key[:100]}"')
    form, shingles, signature = rows[0]
    if shingles is None:
        return None
    from textsim_db.measures.explanation import Side
    from textsim_db.measures.word_diff import tokens_of_form

    return Side(form.split(), shingles, signature, tokens_of_form(form))


def scopes_apart(store: Store, a: str, b: str) -> tuple[str, str] | None:
    """Return the scopes of two documents; None if they are equal, or one is gone."""
    scopes = {key: scope for key, _, scope, *_ in store.read(statements.TRAITS_OF_KEYS, [[a, b]])}
    if len({*scopes.values()}) < 2:
        return None
    return scopes[a], scopes[b]


def has_words(store: Store, text: str) -> bool:
    return bool(read_rows(store.engine, statements.HAS_WORDS, [store.corpus.name, text])[0][0])


def _matches(store: Store, statement: LiteralString, parameters: Sequence[object]) -> list[Match]:
    rows = read_rows(store.engine, statement, parameters)
    return [Match(key, similarity, tuple(differs)) for key, similarity, differs in rows]
