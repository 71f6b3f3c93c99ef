"""Searches of a corpus that was opened with on_server: the server computes what the kernels do."""

from __future__ import annotations

import random
from typing import Any

import pytest

import textsim_db as ts
from textsim_db.read import search_on_server

SETTINGS: list[dict[str, Any]] = [
    {"threshold": 0.6},
    {"recall": 1, "threshold": 0.5},
    {"shingle": "char:4", "threshold": 0.5},
    {"scoped": True, "threshold": 0.4, "stop_words": ["the"]},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_server_finds_what_the_kernels_find(
    db: ts.Database, rng: random.Random, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    corpus = db.create_corpus("c", guards=["numbers", "negations"], **settings)
    scope: dict[str, Any] = {"scope": "one"} if corpus.config.scoped else {}
    words = ["the", "ﬁve", "river", "bridge", "ist", "o'clock", "\N{GRINNING FACE}", "straße", "x"]
    words += ["not", "7", "漢字"]
    texts: dict[int, str] = {}
    for key in range(60):
        begin = texts.get(rng.randrange(60), "").split()
        texts[key] = " ".join([*begin[:30], *rng.choices(words, k=rng.randrange(12))])
    for key, text in texts.items():
        corpus.add(key, text, **scope)
    on_server = db.corpus("c", on_server=True)
    searches: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
    for key in rng.sample(range(60), 20):
        text = texts[key] + " river bridge"
        searches += [("query", (text,), scope | {"max_results": rng.choice([None, 2])})]
        searches += [("query", (text, 0.7), scope), ("neighbours", (key,), {})]
        if corpus.config.is_exact:
            searches.append(("nearest", (text, 5), {}))
    for method, arguments, names in searches:
        expected = getattr(corpus, method)(*arguments, **names)
        assert getattr(on_server, method)(*arguments, **names) == expected, (method, arguments)
    assert not on_server._current.store.corpus.is_checked
    pairs = [(key, rng.randrange(60)) for key in range(60)]
    explained = [on_server.explain(*pair) for pair in pairs]
    assert any(each.guards for each in explained)
    for call in (on_server.neighbours, lambda key: on_server.explain(1, key)):
        with pytest.raises(ts.DocumentNotFound, match='no document "none"'):
            call("none")
    with pytest.raises(ts.DocumentError, match="NUL character at character 2"):
        on_server.query("a\0", **scope)
    monkeypatch.setattr(search_on_server, "MOST_CHARACTERS", -1)
    assert explained == [corpus.explain(*pair) for pair in pairs]


def test_what_the_server_would_find_otherwise_is_left_to_kernels(
    db: ts.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.create_corpus("c", threshold=0.5).add("a", "one two three four")
    for arguments in ({"threshold": 0.4}, {"threshold": 0.5, "measure": "dice"}):
        corpus = db.corpus("c", on_server=True)
        assert [match.key for match in corpus.query("one two three four", **arguments)] == ["a"]
        assert corpus._current.store.corpus.is_checked
    monkeypatch.setattr(search_on_server, "MOST_CHARACTERS", 5)
    corpus = db.corpus("c", on_server=True)
    assert len(corpus.query("one two three four")) == 1
    assert corpus._current.store.corpus.is_checked
