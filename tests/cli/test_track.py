"""Tracked clusters, in a shell."""

from __future__ import annotations

from tests.support.commands import NEWS, Textsim
from tests.support.connections import Connection


def test_a_corpus_is_tracked_and_untracked(textsim: Textsim, connection: Connection) -> None:
    textsim("corpus", "create", "news")
    for key in ("a", "b"):
        connection.execute("SELECT textsim.add('news', %s, %s)", [key, NEWS["a"]])
    assert textsim("track", "news", "--linkage", "single").stderr == "compared 2 documents\n"
    query = "SELECT key FROM textsim.members('news') ORDER BY key"
    assert connection.execute(query).fetchall() == [("a",), ("b",)]
    assert "is tracked already" in textsim("track", "news", status=2).stderr
    textsim("untrack", "news")
    assert "is not tracked" in textsim("untrack", "news", status=2).stderr
