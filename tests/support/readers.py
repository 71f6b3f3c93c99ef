"""The functions of SQL that have a method of the same name, called with random arguments in both."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from uuid import UUID

import psycopg

import textsim_db as ts
from tests.support.catalog import ARGUMENTS
from tests.support.connections import Connection
from textsim_db.settings.named_values import Linkage

NAMES = {"matches": "query", "distinct_of": "distinct"}
"""Methods that have another name than the function."""
OTHER_KINDS = {"attach", "characters", "detach", "merge", "normal_form", "remove"}
"""Functions that take a relation, a text or one key, and their methods something else."""
NO_READERS = {"add_unique", "forget", "unmerge", "status", "quote", "regions"}
"""Writers; a function whose columns show ages where the method has times; one of lists of rows."""
READERS = f"""
SELECT p.proname, a.arguments[2:], a.columns, a.defaults[2:]
FROM pg_proc p CROSS JOIN LATERAL {ARGUMENTS} a
WHERE p.pronamespace = 'textsim'::regnamespace AND p.proname !~ '^_' AND p.proargnames[1] = 'corpus'
"""


class Function(NamedTuple):
    name: str
    arguments: list[str]
    columns: list[str]
    defaults: list[str | None]

    @property
    def method(self) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(ts.Corpus, NAMES.get(self.name, self.name))
        return method


def functions(connection: Connection) -> list[Function]:
    """Return the functions that have a method."""
    rows = map(Function._make, connection.execute(READERS.encode()).fetchall())
    return [
        each
        for each in rows
        if each.name not in OTHER_KINDS and hasattr(ts.Corpus, NAMES.get(each.name, each.name))
    ]


def draws(corpus: ts.Corpus, texts: Mapping[str, str], rng: random.Random) -> dict[str, Any]:
    """Return a value for each argument that a reader may have."""
    words = texts[rng.choice(sorted(texts))].split()
    return {
        "text": " ".join(w for w in words if rng.random() < 0.9),
        "key": rng.choice(sorted(texts)),
        "keys": [
            *rng.choices(sorted(texts), k=50),
            *(["no document"] if rng.random() < 0.1 else []),
        ],
        "guards": rng.random() < 0.5,
        "missing": rng.choice(["refuse", "keep"]),
        "threshold": rng.choice([corpus.config.threshold, 0.3, 0.8, 1.0]),
        "max_results": rng.choice([1, 3, None]),
        "max_documents": rng.choice([2, None]),
        "min_words": rng.choice([corpus.config.passages, 50, None]),
        "k": rng.choice([1, 20]),
        "linkage": rng.choice([*Linkage]),
        "judgements": rng.random() < 0.5,
        "scope": rng.choice(["x", "y", "none"]) if corpus.config.scoped else None,
        "language": rng.choice([None] * 9 + ["en"]),
        "siblings": rng.random() < 0.5,
        "after": rng.randrange(3),
    }


def python_rows(function: Function, corpus: ts.Corpus, arguments: Mapping[str, Any]) -> Any:
    """Return the rows of a method with the columns of the function, or the class of its error."""
    try:
        found = function.method(corpus, **arguments)
        if function.name == "clusters":
            return list(_rows_of_clusters(found))
        rows = [] if found is None else [found] if hasattr(found, "_fields") else list(found)
    except ts.TextsimError as error:
        return type(error)
    values = [[getattr(row, column) for column in function.columns] for row in rows]
    return [tuple([*v] if type(v) is tuple else v for v in row) for row in values]


def _rows_of_clusters(clusters: Any) -> Iterator[tuple[Any, ...]]:
    for number, cluster in enumerate(clusters, start=1):
        for key in cluster.keys:
            yield key, number, cluster.kept, cluster.weakest


def sql_rows(function: Function, connection: Connection, arguments: Mapping[str, Any]) -> Any:
    """Return the rows of a function, or its error."""
    names = "".join(f", {name} => %({name})s" for name in arguments)
    query = f"SELECT * FROM textsim.{function.name}('c'{names})"
    try:
        rows = connection.execute(query.encode(), {**arguments}).fetchall()
        return [tuple(str(v) if isinstance(v, UUID) else v for v in row) for row in rows]
    except psycopg.Error as error:
        return error
