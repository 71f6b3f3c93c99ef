"""textsim warm compiles every kernel that the commands and methods use."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.support.commands import NEWS, process
from tests.support.forking import run_script

COMMANDS = (
    ("index", "news", "news.jsonl", "--create"),
    ("index", "chars", "news.jsonl", "--create", "--shingle", "char:5"),
    ("index", "exact", "news.jsonl", "--create", "--recall", "1"),
    ("index", "unique", "news.jsonl", "--create", "--unique"),
    ("query", "news", NEWS["a"]),
    ("query", "exact", NEWS["a"], "--measure", "levenshtein", "--threshold", "9"),
    ("query", "chars", NEWS["a"], "--measure", "containment", "--threshold", "0.9"),
    ("neighbours", "unique", "a"),
    ("pairs", "news"),
    ("pairs", "exact"),
    ("clusters", "chars", "--linkage", "complete"),
    ("dedupe", "news.jsonl", "-o", "rest.jsonl"),
    ("dedupe", "news.jsonl", "-o", "rest.jsonl", "--recall", "1", "--linkage", "single"),
    ("compare", NEWS["a"], NEWS["d"]),
    ("plan", "news"),
    ("plan", "exact"),
    ("stats", "chars"),
    ("attach", "news", "article", "--key", "id"),
    ("attach", "exact", "article", "--key", "id"),
    ("worker", "--once"),
    ("reconcile", "news"),
    ("rebuild", "exact", "--threshold", "0.7"),
    ("rebuild", "chars", "--shingle", "char:7"),
    ("check",),
    ("doctor",),
    ("db", "install", "--no-warm"),
)
METHODS = """
with ts.connect(url) as db:
    for recall in (0.95, 1):
        corpus = db.create_corpus(f"of methods {recall}", recall=recall, is_unique=True)
        corpus.add_unique("a", "one two three four")
        corpus.add("b", "some other words, ﬁve of them")
        corpus.query_many(["one two three four", "none"])
        list(corpus.pairs()), list(corpus.duplicates()), corpus.signature("a text")
        corpus.drop()
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for compiled kernels."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache"


def run(url: str, *command: str) -> str:
    """Run a command in a process of its own, and return its messages."""
    started = process(*command, url=url)
    _, errors = started.communicate()
    assert started.returncode in (0, 1), (command, errors)
    return errors


def kernels(cache: Path) -> set[str]:
    """Return the compiled kernels by file, as module.function-line and the number of its variant."""
    return {
        f"{path.parent.name.rpartition('_')[0]}/{re.sub('[.]py3[^.]*', '', path.name)}"
        for path in cache.rglob("*.nbc")
    }


@contextmanager
def nothing_compiled(cache: Path, work: str) -> Iterator[None]:
    before = kernels(cache)
    yield
    missing = sorted(kernels(cache) - before)
    assert not missing, f"{work} compiled {missing}"


@pytest.mark.long
def test_nothing_is_compiled_after_warm(cache: Path, database_url: str) -> None:
    Path("news.jsonl").write_text(
        "\n".join(json.dumps({"id": key, "text": text}) for key, text in NEWS.items())
    )
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE article (id text PRIMARY KEY, text text)")
        connection.execute("INSERT INTO article VALUES ('x', 'one two three four')")
        assert run(database_url, "warm").startswith("compiling all kernels, once for this")
        assert kernels(cache)
        assert connection.execute("SELECT count(*) FROM textsim.corpus").fetchone() == (0,)
        assert run(database_url, "warm") == "all kernels are compiled\n"
        with nothing_compiled(cache, "the methods"):
            assert run_script(METHODS, database_url) == (0, "", "")
        for command in COMMANDS:
            with nothing_compiled(cache, " ".join(command)):
                run(database_url, *command)
        with nothing_compiled(cache, "a worker, after SQL wrote documents"):
            connection.execute("SELECT textsim.add('news', 'by SQL', 'more words than before')")
            connection.execute("SELECT textsim.add('exact', 'by SQL', 'more words than before')")
            run(database_url, "query", "exact", "more words than before")
            run(database_url, "worker", "--once")
