"""All commands: their results and messages as JSON, and those that load no kernels."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

import textsim_db as ts
from scripts.write_reference import each_command
from tests.support.commands import NEWS, Textsim
from textsim_db.cli import messages
from textsim_db.cli.commands import _WITHOUT_JSON
from textsim_db.corpus.database import URL_VARIABLE
from textsim_db.db.embedded_server import DATA_DIR_VARIABLE

GROUPS = {name for name, command in each_command() if hasattr(command, "commands")}
COMMANDS = {name for name, _ in each_command()} - GROUPS
WITHOUT_RESULTS = {"pending", "check", "status --scopes chat", "pending --retry", "doubtful news"}
"""Commands that list nothing here, because all is well."""
LINES: list[tuple[str, dict[str, Any]]] = [
    ("db install --no-warm", {}),
    ("corpus create news --threshold 0.5 --recall 1", {"threshold": 0.5, "documents": 0}),
    ("corpus create news --exist-ok --threshold 0.5 --recall 1", {"corpus": "news"}),
    ("index news news.jsonl", {"corpus": "news", "added": 4, "refused": 0}),
    ("corpus list", {"corpus": "news", "documents": 4}),
    ("corpus list news", {"corpus": "news", "documents": 4}),
    ("query news the-quick-brown-fox-jumps-over-the-lazy-dog-near-the-river-bank", {"key": "a"}),
    ("neighbours news a", {"key": "b"}),
    ("pairs news", {"a": "a", "b": "b"}),
    ("clusters news", {"keys": ["a", "b", "c"]}),
    ("compare news.jsonl other.jsonl", {}),
    ("identify news.jsonl", {"key": "a", "language": "en"}),
    ("judge news a b same", {"a": "a", "b": "b", "verdict": "same", "is_new": True}),
    ("doubtful news", {}),
    ("keys news --prefix a", {"key": "a", "records": 1}),
    ("judgements list news", {"a": "a", "b": "b", "verdict": "same"}),
    ("judgements import news judgements.jsonl", {"judgements": 1, "new": 1}),
    ("judgements import news judgements.csv", {"judgements": 1, "new": 1}),
    ("judgements remove news a b", {"is_removed": True}),
    ("judgements cluster clusters.jsonl b same", {"a": "a", "b": "b", "verdict": "same"}),
    ("track news", {"corpus": "news", "documents": 4}),
    ("members news", {"key": "b", "representative": "a", "similarity": 1.0}),
    ("untrack news --yes", {"corpus": "news"}),
    ("attach news article --key id --text body", {"corpus": "news", "added": 2}),
    ("worker --once", {"documents": 0}),
    ("status", {"workers": []}),
    ("status --max-lag 1000", {"workers": []}),
    ("pending", {}),
    ("pending --retry", {}),
    ("reconcile news", {"corpus": "news", "added": 0}),
    ("merge news article --yes", {"corpus": "news", "merged": 1, "left_alone": {}}),
    ("unmerge news --kept x", {"key": "y", "kept_key": "x", "outcome": "restored"}),
    ("detach news article", {"corpus": "news", "table": "article"}),
    ("plan news", {}),
    ("rebuild news --threshold 0.7", {"corpus": "news", "threshold": 0.7, "is_rebuilt": True}),
    ("stats news", {"documents": 6}),
    ("boilerplate news --share 0.1", {}),
    ("check", {}),
    ("remove news a unknown", {"documents": 1, "unknown": ["unknown"]}),
    ("corpus create chat --keep-for '1 day' --scoped", {"corpus": "chat"}),
    ("status --scopes chat", {}),
    ("expire chat", {"corpus": "chat", "documents": 0}),
    ("doctor", {"faults": 0}),
    ("db url", {}),
    ("db sql", {}),
    ("corpus create letters --passages 10", {"corpus": "letters"}),
    ("index letters news.jsonl", {"corpus": "letters", "added": 4}),
    (
        "passages letters 'the quick brown fox jumps over the lazy dog near the river bank'",
        {"key": "a"},
    ),
    (
        "quote letters 'the quick brown fox jumps over the lazy dog near the river bank' --format jsonl",
        {"verdict": "exact"},
    ),
    ("regions letters 'the quick brown fox jumps over the lazy dog near the river'", {"key": "a"}),
    ("quotations news.jsonl --against letters --key id", {"verdict": "exact"}),
    ("contamination news.jsonl --against letters", {"key": "a"}),
    ("corpus create posts --unique", {"corpus": "posts"}),
    ("index posts other.jsonl", {"corpus": "posts", "added": 1}),
    ("reject posts a spam", {"corpus": "posts", "key": "rejected: a"}),
    ("rejected posts", {"key": "rejected: a", "reason": "spam"}),
    ("forget news b --later --yes", {"documents": 1, "has_words": True}),
    ("corpus drop news --yes", {"corpus": "news", "documents": 4}),
    ("db uninstall --yes", {}),
]
"""Command lines one after another, and members that an object of each has."""
ELSEWHERE = {"warm", "db stop"}
"""Commands that change the machine of the tests."""
COMPUTING = {
    *("dedupe", "compare", "identify", "demo", "index", "pairs"),
    *("clusters", "review", "track", "attach", "worker", "reconcile", "plan", "rebuild", "stats"),
    *(
        "boilerplate",
        "check",
        "warm",
        "passages",
        "regions",
        "contamination",
        "quote",
        "quotations",
    ),
}
"""Commands that compute signatures, as check does for each document. Their help does not."""
ONE_TEXT = [
    *("--help", "--version", "status", "corpus list", "corpus list news", "members news a"),
    *("query news 'the quick brown fox jumps over'", "neighbours news a"),
    *("compare a b --corpus news", "compare a d --corpus news"),
    *("judge news a b same", "judgements list news", "remove news b"),
]
"""Commands of one or two texts or none, which import neither what computes nor SQLAlchemy."""
SERVE = """
import json, sys
from typer.testing import CliRunner
from textsim_db.cli import app
for line in sys.stdin:
    result = CliRunner().invoke(app, json.loads(line), prog_name="textsim")
    heavy = [
        name
        for name in ("numba", "numpy", "scipy", "sqlalchemy", "pydantic", "alembic")
        if name in sys.modules
    ]
    print(json.dumps([result.exit_code, result.stdout, result.stderr, heavy]), flush=True)
"""
"""A process that runs the other commands, and says which heavy packages are loaded."""


def named(lines: Iterable[str]) -> set[str]:
    """Return the commands of command lines; the command of a group has two words."""
    words = [line.split() for line in lines]
    return {" ".join(w[: 2 if w[0] in GROUPS else 1]) for w in words}


@pytest.fixture
def light(database_url: str, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Run commands in a process that asserts after each that no heavy package is loaded."""
    paths = {"PYTHONPATH": str(Path(ts.__file__).parents[1]), URL_VARIABLE: database_url}
    with subprocess.Popen(
        [sys.executable, "-c", SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **paths, DATA_DIR_VARIABLE: str(tmp_path / "home")},
        text=True,
    ) as server:
        stdin, stdout = server.stdin, server.stdout
        assert stdin
        assert stdout

        def run(*words: str, status: int = 0) -> Any:
            print(json.dumps(words), file=stdin, flush=True)
            code, output, messages, heavy = json.loads(stdout.readline())
            assert code == status, (words, messages)
            assert not {"numba", "numpy", "scipy"} & {*heavy}, words
            return SimpleNamespace(stdout=output, stderr=messages, heavy=heavy)

        yield run
        stdin.close()


def test_commands_in_json(textsim: Textsim, light: Callable[..., Any], database_url: str) -> None:
    assert named(line for line, _ in LINES) == COMMANDS - _WITHOUT_JSON - ELSEWHERE
    records = [json.dumps({"id": key, "text": text}) for key, text in NEWS.items()]
    Path("news.jsonl").write_text("\n".join(records))
    Path("other.jsonl").write_text(records[0])
    Path("judgements.jsonl").write_text('{"a": "a", "b": "d", "verdict": "different"}')
    Path("judgements.csv").write_text("a,b,verdict\na,c,same\n")
    Path("clusters.jsonl").write_text('{"kept": "a", "keys": ["a", "b"]}')
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE article (id text PRIMARY KEY, body text)")
        connection.execute("INSERT INTO article VALUES ('x', 'one two three four')")
        connection.execute("INSERT INTO article VALUES ('y', 'one two three four!')")
    for command in [
        "",
        "status --prometheus",
        "db stop",
        *(f"{c} --help" for c in ["", *COMPUTING]),
    ]:
        light(*command.split())
    for line, members in LINES:
        words = [*shlex.split(line), "--json", "--log-json"]
        run = textsim if named([line]) <= COMPUTING else light
        result = run(*words, status=1 if "unknown" in line else 0)
        for record in map(json.loads, result.stderr.splitlines()):
            assert list(record)[:4] == ["time", "level", "logger", "message"]
            assert datetime.fromisoformat(record["time"]).utcoffset() == timedelta(0)
            assert record["level"] in messages.LEVELS
            assert record["logger"].startswith("textsim_db")
            assert isinstance(record.get("seconds", 0.0), float)
        objects = [json.loads(each) for each in result.stdout.splitlines()]
        assert objects or line in WITHOUT_RESULTS or line.split(" news")[0] in WITHOUT_RESULTS, line
        assert all(isinstance(each, dict) for each in objects), line
        if members:
            assert any(members.items() <= each.items() for each in objects), (line, objects)


def test_commands_of_few_texts_load_a_driver(light: Callable[..., Any], textsim: Textsim) -> None:
    assert light("check").heavy == []  # there is no corpus: it reads the catalogue only
    textsim("corpus", "create", "news", "--threshold", "0.5", "--recall", "1")
    records = [json.dumps({"id": key, "text": text}) for key, text in NEWS.items()]
    textsim("index", "news", "-", input="\n".join(records))
    textsim("track", "news")
    for line in ONE_TEXT:
        assert light(*shlex.split(line)).heavy == [], line


def test_json_stands_for_the_format(textsim: Textsim) -> None:
    textsim("corpus", "create", "news")
    plain = textsim("corpus", "list", "--format", "jsonl").stdout
    assert textsim("corpus", "list", "--json").stdout == plain
    assert textsim("corpus", "list", "--json", "--format", "jsonl").stdout == plain
    refused = textsim("corpus", "list", "--json", "--format", "csv", status=2)
    assert "--json is --format jsonl" in refused.stderr
    # The next command of the process does not have the option.
    assert "news" in textsim("corpus", "list").stdout.splitlines()[-1]
    assert not textsim("corpus", "list").stdout.startswith("{")
    assert "--prometheus" in textsim("status", "--prometheus", "--json", status=2).stderr
