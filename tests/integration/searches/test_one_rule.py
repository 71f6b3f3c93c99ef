"""One function in each language decides what matches: every entry point obeys a rule of the test."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numba
import polars
import pytest

import textsim_db as ts
from tests.support.connections import Connection, value
from textsim_db.cluster import split_large_buckets
from textsim_db.compare import match_rule
from textsim_db.compare.match_rule import Criterion
from textsim_db.measures.by_name import JACCARD
from textsim_db.read import bucket_pairs
from textsim_db.review.corpus_documents import random_matches
from textsim_db.settings.named_values import Linkage
from textsim_db.sync import build_clusters

LINKAGES = tuple(Linkage)
SETTINGS: dict[str, Any] = {"shingle": "word:1", "threshold": 0.6, "recall": 1}


def _text(prefix: str, changed: int) -> str:
    """Return a text of 20 words of which some are its own."""
    words = [f"{prefix}{number}" for number in range(20)]
    return " ".join([f"{prefix}{changed}of{number}" for number in range(changed)] + words[changed:])


NEAR, FAR = 1, 3
"""Words changed: the similarities are 19 / 21, which the rule refuses, and 17 / 23, a match."""
TEXTS = {
    "a": _text("a", 0),
    "a near": _text("a", NEAR),
    "c": _text("c", 0),
    "c far": _text("c", FAR),
}
MATCH = ("c", "c far")


LEAST_REFUSED, LEAST_COPY = 0.9, 0.99
"""The rule refuses what is as similar as the first, and not as the second."""

SQL_RULE = f"""
    CREATE OR REPLACE FUNCTION textsim._is_match(similarity double precision, threshold double precision)
    RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN similarity >= threshold
        AND NOT (similarity >= {LEAST_REFUSED} AND similarity < {LEAST_COPY})
"""


def _is_match(similarity: float, threshold: float) -> bool:
    is_refused = LEAST_REFUSED <= similarity < LEAST_COPY
    return similarity >= threshold and not is_refused


@pytest.fixture(scope="module")
def rule_of_python() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        _replace(patch, match_rule.is_match, _is_match)
        yield


def _replace(monkeypatch: pytest.MonkeyPatch, old: Any, function: Callable[..., object]) -> None:
    """Replace a kernel, and compile the kernels that call it again; nothing of it is cached."""
    new = numba.jit(**old.targetoptions)(function)
    named = [(module, name) for module in _modules() for name in vars(module)]
    for module, name in named:
        if getattr(module, name) is old:
            monkeypatch.setattr(module, name, new)
    for module, name in named:
        caller = getattr(module, name)
        # Some objects have every attribute, such as sqlalchemy.func.
        is_kernel = inspect.isfunction(getattr(caller, "py_func", None))
        if is_kernel and caller is not new and _calls(caller, new):
            _replace(monkeypatch, caller, caller.py_func)


def _calls(caller: Any, kernel: Any) -> bool:
    names, values = caller.py_func.__code__.co_names, caller.py_func.__globals__
    return any(values.get(name) is kernel for name in names)


def _modules() -> Iterator[ModuleType]:
    modules = [*sys.modules.items()]
    return (module for name, module in modules if name.startswith("textsim_db.") and module)


@pytest.fixture
def rule(rule_of_python: None, connection: Connection) -> None:
    """Put the rule in."""
    connection.execute(SQL_RULE.encode())


@pytest.mark.usefixtures("rule")
def test_what_python_reads_obeys_the_rule(db: ts.Database) -> None:
    corpus = db.create_corpus("c", **SETTINGS)
    corpus.add_many(TEXTS.items())
    for near, others in (("a", []), ("c", ["c far"])):
        assert [match.key for match in corpus.query(TEXTS[near])] == [near, *others]
        assert [match.key for match in corpus.query_many([TEXTS[near]])[0]] == [near, *others]
        assert [match.key for match in corpus.neighbours(near)] == others
        containing = corpus.query(TEXTS[near], measure="containment", threshold=0.6)
        assert [match.key for match in containing] == [near, *others]
    for listed in (corpus.pairs(), corpus.pairs(measure="cosine_similarity", threshold=0.6)):
        assert [pair[:2] for pair in listed] == [MATCH]
    for linkage in LINKAGES:
        assert [(*cluster.keys,) for cluster in corpus.clusters(linkage=linkage)] == [MATCH]
        duplicates = corpus.duplicates(linkage=linkage)
        assert [(d.kept, d.key) for d in duplicates] == [MATCH]
    for results in (corpus.distinct(TEXTS), ts.distinct(TEXTS, **SETTINGS)):
        assert [(*result.copies, result.key) for result in results] == [
            ("a",),
            ("a near",),
            ("c far", "c"),
        ]
    assert corpus.measure_recall(sample=4, seed=1).pairs == 1
    random = corpus._current.call(random_matches, Criterion(JACCARD, 0.6), 10, 1)
    assert {pair[:2] for pair in random.pairs} == {MATCH}


@pytest.mark.usefixtures("rule")
def test_large_buckets_obey_the_rule(db: ts.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_pairs, "CROWDED_BUCKET", 1)
    monkeypatch.setattr(split_large_buckets, "LARGE_BUCKET", 1)
    monkeypatch.setattr(split_large_buckets, "MOST_MET", 0)
    for recall in (1, 0.95):
        corpus = db.create_corpus(f"c {recall}", **{**SETTINGS, "recall": recall})
        corpus.add_many(TEXTS.items())
        assert [pair[:2] for pair in corpus.pairs()] == [MATCH]
        for linkage in LINKAGES:
            assert [(*cluster.keys,) for cluster in corpus.clusters(linkage=linkage)] == [MATCH]


@pytest.mark.usefixtures("rule")
def test_what_sql_reads_obeys_the_rule(db: ts.Database, connection: Connection) -> None:
    corpus = db.create_corpus("c", passages=6, **SETTINGS)
    corpus.add_many(TEXTS.items())
    for near, others in (("a", []), ("c", ["c far"])):
        for query, argument, keys in (
            ("matches('c', %s)", TEXTS[near], [near, *others]),
            ("neighbours('c', %s)", near, others),
            ("nearest('c', %s, 9)", TEXTS[near], [near, *others]),
        ):
            rows = connection.execute(f"SELECT key FROM textsim.{query}".encode(), [argument])
            assert [key for (key,) in rows.fetchall()] == keys, query
    assert connection.execute("SELECT a, b FROM textsim.pairs('c')").fetchall() == [MATCH]
    for linkage in LINKAGES:
        for query in (
            "SELECT kept, key FROM textsim.duplicates('c', linkage => %s)",
            "SELECT min(key), max(key) FROM textsim.clusters('c', linkage => %s) GROUP BY cluster",
        ):
            assert connection.execute(query.encode(), [linkage]).fetchall() == [MATCH]


@pytest.mark.usefixtures("rule")
@pytest.mark.parametrize("recall", [1, 0.95])
def test_twins_obey_the_rule(db: ts.Database, connection: Connection, recall: float) -> None:
    ways: dict[str, Callable[[str, str], object]] = {
        "sql": lambda name, key: connection.execute(
            "SELECT * FROM textsim.add_unique(%s, %s, %s)", [name, key, TEXTS[key]]
        ),
        "python": lambda name, key: db.corpus(name).add_unique(key, TEXTS[key]),
        "many": lambda name, key: db.corpus(name).add_many([(key, TEXTS[key])]),
        "listed": lambda name, key: connection.execute(
            "SELECT textsim.add(%s, t.key, t.text) FROM (VALUES (%s::text, %s::text)) t (key, text) "
            "WHERE t.key NOT IN (SELECT key FROM textsim.twins_of(%s, ARRAY[t.key], ARRAY[t.text]))",
            [name, key, TEXTS[key], name],
        ),
    }
    for name, write in ways.items():
        corpus = db.create_corpus(name, is_unique=True, **{**SETTINGS, "recall": recall})
        for key in TEXTS:
            write(name, key)
        assert [key for key in TEXTS if key in corpus] == ["a", "a near", "c"], name
        assert corpus.check() == []
    # In one batch or list they are compared with each other, too.
    corpus = db.create_corpus("batch", is_unique=True, **SETTINGS)
    twins = connection.execute(
        "SELECT key FROM textsim.twins_of('batch', %s, %s)", [[*TEXTS], [*TEXTS.values()]]
    ).fetchall()
    assert twins == [("c far",)]
    assert [twin.key for twin in corpus.add_many(TEXTS.items()).twins] == ["c far"]
    assert corpus.rebuild(seed=3)
    assert corpus.check() == []
    # Of the documents in the way only those are listed that match.
    corpus = db.create_corpus("way", is_unique=True, **{**SETTINGS, "threshold": 0.7})
    corpus.add_many([("far", TEXTS["c far"]), ("near", f"{TEXTS['c'].rpartition(' ')[0]} other")])
    (twin,) = corpus.add_many([("c", TEXTS["c"])]).twins
    assert (len(corpus), twin.standing) == (2, "far")
    assert [match.key for match in corpus.add_unique("c", TEXTS["c"]).matches] == ["far"]


@pytest.mark.usefixtures("rule")
def test_tracked_clusters_obey_the_rule(
    db: ts.Database, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for least in (1, 100):
        # One builds the clusters in Python, the other in SQL.
        monkeypatch.setattr(build_clusters, "LEAST_DOCUMENTS", least)
        corpus = db.create_corpus(f"{least}", **SETTINGS)
        corpus.add_many(TEXTS.items())
        corpus.track()
        corpus.update_clusters()
        query = f"SELECT count(*) FROM textsim.match_{corpus._current.store.corpus.id}"
        assert value(connection, query) == 1
        assert corpus.check() == []


@pytest.mark.usefixtures("rule")
def test_frames_and_tasks_of_spark_obey_the_rule(db: ts.Database) -> None:
    frame = polars.DataFrame({"key": [*TEXTS], "text": [*TEXTS.values()]})
    for linkage in LINKAGES:
        _, report = ts.dedupe_frame(frame, "text", key="key", linkage=linkage, **SETTINGS)
        assert [(row.kept, row.key) for row in report.removed] == [MATCH]
    pytest.importorskip("pyspark")
    from tests.support.spark_stages import find, results
    from textsim_db.spark import stage_3_results

    config = ts.CorpusSettings(**SETTINGS).complete()
    documents = [*TEXTS.items()]
    rows = results(stage_3_results.pairs, documents, find(documents, config, 3), config)
    assert [row[:2] for row in rows] == [MATCH]
