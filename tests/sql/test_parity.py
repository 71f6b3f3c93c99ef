"""A function of SQL has the arguments, the defaults and the results of the method with the same name.

The catalog and the class are the table: a new method that has a function needs no line here.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.connections import Connection
from textsim_db.settings.named_values import Verdict

pytestmark = pytest.mark.both_servers

NAMES = {"matches": "query", "distinct_of": "distinct"}
"""Methods that have another name than the function."""
ONLY_SQL = {
    "clusters": set(),
    "duplicates": {"keep"},
    "attach": set(),
    "judge": {"hashes"},
}
"""Arguments that only the function has, where a method has an argument of another kind instead."""
ONLY_PYTHON = {"measure", "rank", "progress", "later", "any_text"}
"""Arguments that only methods have: the other measures, functions, and a rebuild at once or later."""
OTHER_KINDS = {"attach", "characters", "detach", "merge", "normal_form", "remove"}
"""Functions that take a relation, a text or one key, and their methods something else."""
NO_READERS = {"add_unique", "forget", "unmerge", "status", "quote", "regions"}
"""Writers; a function whose columns show ages where the method has times; one of lists of rows."""
READERS = """
SELECT p.proname, p.proargnames[2:p.pronargs], p.proargnames[p.pronargs + 1:],
    ARRAY(SELECT pg_get_function_arg_default(p.oid, i) FROM generate_series(2, p.pronargs) i)
FROM pg_proc p
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
    rows = map(Function._make, connection.execute(READERS).fetchall())
    return [
        each
        for each in rows
        if each.name not in OTHER_KINDS and hasattr(ts.Corpus, NAMES.get(each.name, each.name))
    ]


def test_arguments_and_defaults_are_those_of_the_method(connection: Connection) -> None:
    compared = functions(connection)
    assert len(compared) > 20
    for function in compared:
        parameters = dict(inspect.signature(function.method).parameters)
        own = {*parameters} - {"self"} - ONLY_PYTHON
        assert set(function.arguments) - ONLY_SQL.get(function.name, set()) == own, function.name
        for name, expression in zip(function.arguments, function.defaults, strict=True):
            if name not in own:
                continue
            default = parameters[name].default
            if expression is None:
                assert default is inspect.Parameter.empty, (function.name, name)
            else:
                ((value,),) = connection.execute(f"SELECT {expression}".encode()).fetchall()
                assert value == default, (function.name, name)


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
        "linkage": rng.choice([*ts.Linkage]),
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


def test_every_reader_returns_the_same_in_both_languages(
    db: ts.Database, connection: Connection, rng: random.Random
) -> None:
    shingle = rng.choice(["word:3", "word:1", "char:5"])
    corpus = db.create_corpus(
        "c",
        shingle=shingle,
        threshold=0.5,
        recall=rng.choice([0.95, 1]),
        passages=40 if shingle == "char:5" else 6,  # nearly all texts share six characters
        scoped=rng.random() < 0.3,
    )
    texts = dict(documents(80, words=25, planted=0.5, seed=rng.randrange(10**6)))
    texts |= {"empty": "", "short": "word", "Zoë": "漢字 word กิ่ง"}
    for key, text in texts.items():  # the words of some have no ids
        scope = rng.choice("xy") if corpus.config.scoped else None
        if rng.random() < 0.7:
            corpus.add(key, text, scope)
        else:
            connection.execute("SELECT textsim.add('c', %s, %s, %s)", [key, text, scope])
    corpus.track(mode="queue", keep_events=timedelta(days=1))
    corpus.update_clusters()
    for a, b in zip(sorted(texts), sorted(texts)[1:4], strict=False):
        if not corpus.config.scoped:
            corpus.judge(a, b, rng.choice([*Verdict]))
    readers = [f for f in functions(connection) if f.columns and f.name not in NO_READERS]
    assert len(readers) > 14
    found = dict.fromkeys((each.name for each in readers), 0)
    for _ in range(8):
        values = draws(corpus, texts, rng)
        for function in readers:
            parameters = inspect.signature(function.method).parameters
            arguments = {
                name: values[name]
                for name in function.arguments
                if name in parameters
                and (parameters[name].default is inspect.Parameter.empty or rng.random() < 0.5)
            }
            expected = python_rows(function, corpus, arguments)
            rows = sql_rows(function, connection, arguments)
            if isinstance(expected, type):
                is_refused = rows == [] or isinstance(rows, psycopg.Error)
                assert is_refused, (function.name, arguments, expected)
                continue
            assert not isinstance(rows, psycopg.Error), (function.name, arguments, rows)
            if not inspect.signature(function.method).return_annotation.startswith("list"):
                expected, rows = sorted(expected, key=repr), sorted(rows, key=repr)
            assert rows == expected, (function.name, arguments)
            found[function.name] += len(rows)
    assert sum(found.values()) > 500, found
