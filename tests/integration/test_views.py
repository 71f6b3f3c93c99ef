"""Views of candidate pairs when their corpus is rebuilt or dropped."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors as pg

import textsim_db as ts
from benchmarks.generate import documents
from textsim_db.db import stored_corpus

TEXTS = dict(documents(120, words=40, planted=0.3, seed=8))


def test_a_view_of_candidate_pairs_follows_a_rebuild(db: ts.Database) -> None:
    corpus = db.create_corpus("c", threshold=0.5)
    corpus.add_many(TEXTS.items())
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute(
            "CREATE SCHEMA mine; SELECT textsim.create_view('c', 'mine.\"Near\"');"
            'ALTER VIEW mine."Near" SET (security_barrier = true);'
            'GRANT SELECT ON mine."Near" TO PUBLIC;'
            'CREATE VIEW counted AS SELECT a, count(*) FROM mine."Near" GROUP BY a'
        )
        settings = "SELECT reloptions, relacl::text FROM pg_class WHERE relname = 'Near'"
        before = connection.execute(settings).fetchall()
        assert corpus.rebuild(shingle="char:4")
        assert connection.execute(settings).fetchall() == before
        rows = connection.execute('SELECT a, b, shared FROM mine."Near" WHERE a < b').fetchall()
        expected = connection.execute("SELECT * FROM textsim.candidate_pairs('c')").fetchall()
        assert len(rows) == len(expected) > 0
        assert connection.execute("SELECT count(*) > 0 FROM counted").fetchone() == (True,)
        refused = r'view mine."Near" reads the corpus; drop the view first: DROP VIEW mine."Near"'
        with pytest.raises(pg.DependentObjectsStillExist, match=refused):
            connection.execute("SELECT textsim.drop_corpus('c')")
        for drop in (corpus.drop, lambda: db.drop_corpus("c")):
            with pytest.raises(ts.ConfigurationError, match=refused):
                drop()
        number = connection.execute("SELECT id FROM textsim.corpus").fetchone()
        assert number is not None
        connection.execute(
            f"CREATE MATERIALIZED VIEW own AS SELECT key FROM textsim.document_{number[0]}".encode()
        )
        with pytest.raises(
            ts.ConfigurationError,
            match=r"view public.own reads the corpus and cannot follow a rebuild.* drop the view first: "
            "DROP MATERIALIZED VIEW public.own",
        ):
            corpus.rebuild(seed=9)
        assert stored_corpus.names(db.engine) == ["c"]
        connection.execute('DROP MATERIALIZED VIEW own; DROP VIEW counted; DROP VIEW mine."Near"')
    assert corpus.rebuild(seed=9)
    corpus.drop()
