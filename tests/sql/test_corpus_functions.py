"""The functions of a corpus are created and dropped with it, and planned once in a session."""

from __future__ import annotations

from typing import Any, LiteralString

import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.catalog import check_settings
from tests.support.connections import Connection
from tests.support.sampling import sample

CORPUS_FUNCTIONS = r"""
SELECT p.oid::regprocedure::text, pg_get_functiondef(p.oid), p.proconfig::text[],
    p.provolatile, p.proparallel, p.prosecdef, p.proacl::text
FROM pg_proc p
WHERE p.pronamespace = 'textsim'::regnamespace AND p.proname ~ '_\d+$'
ORDER BY 1
"""


def functions(connection: Connection) -> list[tuple[Any, ...]]:
    return connection.execute(CORPUS_FUNCTIONS).fetchall()


def names(connection: Connection) -> list[str]:
    return [name.partition("(")[0] for name, *_ in functions(connection)]


def test_a_corpus_is_created_and_dropped_with_its_functions(
    db: ts.Database, connection: Connection
) -> None:
    objects = (
        "SELECT relname FROM pg_class WHERE relnamespace = 'textsim'::regnamespace "
        r"AND relname ~ '_\d+(_|$)' ORDER BY 1"
    )
    assert names(connection) == []
    assert connection.execute(objects).fetchall() == []
    db.create_corpus("python")
    connection.execute("SELECT textsim.create_corpus('sql')")
    actions = ("candidates", "distinct", "mates", "normal_form_of", "word_numbers", "write")
    expected = [f"textsim._{action}_{i}" for action in actions for i in (1, 2)]
    assert names(connection) == expected
    assert connection.execute(objects).fetchall() == [
        (f"{relation}_{i}{suffix}",)
        for relation, suffixes in (
            ("band", ("", "_bucket")),
            ("document", ("", "_id", "_id_seq", "_key")),
            ("word", ("", "_hash", "_id", "_id_seq")),
        )
        for i in (1, 2)
        for suffix in suffixes
    ]
    db.drop_corpus("python")
    assert names(connection) == expected[1::2]
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
    connection.execute("SELECT textsim.drop_corpus('sql')")
    assert notices == []
    assert names(connection) == []
    assert connection.execute(objects).fetchall() == []


def test_the_functions_state_volatility_settings_and_rights(
    db: ts.Database, connection: Connection
) -> None:
    db.create_corpus("c")
    for name, _, settings, volatile, parallel, definer, rights in functions(connection):
        check_settings(name, settings, plans=True)
        assert (volatile, parallel) == (("v", "u") if "._write_" in name else ("s", "s"))
        assert not definer
        assert rights is None  # the tables are protected, so a call needs no right of its own


SCANS = """
SELECT sum(seq_scan), sum(idx_scan) FROM pg_stat_xact_user_tables
WHERE schemaname = 'textsim' AND relname IN ('document_1', 'band_1')
"""
"""Scans of the current transaction: these are counted at once."""


@pytest.mark.parametrize(
    ("mode", "recall"), sample([("inline", 0.95), ("inline", 1.0), ("by function", 0.95)], 3)
)
def test_plans_made_for_an_empty_corpus_use_the_index_when_it_is_full(
    db: ts.Database, connection: Connection, mode: str, recall: float
) -> None:
    """A session searches and writes in empty tables, and then fills them."""
    corpus = db.create_corpus("c", num_hashes=32, recall=recall)
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text)")
    if mode == "inline":
        corpus.attach("t", "id", "body", "inline")
        write, remove = "INSERT INTO t VALUES (%s, %s)", "DELETE FROM t WHERE id = %s"
    else:
        write, remove = "SELECT textsim.add('c', %s, %s)", "SELECT textsim.remove('c', %s)"
    searches = (
        "SELECT key, similarity FROM textsim.matches('c', %s)",
        "SELECT key, similarity FROM textsim.neighbours('c', %s)",
    )
    # Every plan is generic, and is made before there are rows.
    connection.execute("SET plan_cache_mode = force_generic_plan")

    def run(query: LiteralString, *values: str) -> None:
        connection.execute(query, values, prepare=True)

    for _ in range(2):
        run(write, "first", "one two three")
        for query in searches:
            run(query, "first")
        run(remove, "first")
    texts = dict(documents(1000, words=8, planted=0.3, seed=1))
    with connection.transaction():
        for number, (key, text) in enumerate(texts.items()):
            run(write, key, text)
            if number % 10 == 0:
                run(searches[0], text)
                run(searches[1], key)
                run(remove, key)
        sequential, indexed = connection.execute(SCANS).fetchall()[0]
    assert (sequential, indexed > 2_000) == (0, True)
    assert len(corpus) == 900
    db.worker().run(until_idle=True)
    assert corpus.check() == []
