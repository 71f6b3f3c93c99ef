"""Administrative commands load no kernels, so they start quickly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psycopg

import textsim_db as ts
from scripts.write_reference import each_command
from textsim_db.database import URL_VARIABLE
from textsim_db.db.embedded_server import DATA_DIR_VARIABLE

HEAVY = ("numba", "numpy", "scipy", "textsim_db.text.unicode_data")
COMMANDS = [
    "",
    "--help",
    "corpus create titles --threshold 0.6 --recall 1 --unique",
    "corpus create titles --exist-ok --threshold 0.6 --recall 1 --unique",
    "corpus list",
    "corpus show news",
    "corpus list --format jsonl",
    "status",
    "status --scopes tenants",
    "status --prometheus",
    "status --max-lag 1000",
    "pending",
    "pending --retry",
    "judge news key other same",
    "judgements list news",
    "judgements import news judgements.csv",
    "judgements import news judgements.jsonl",
    "judgements contradictions news",
    "judgements remove news key other",
    "untrack news",
    "expire tenants",
    "doctor",
    "db url",
    "db sql",
    "db install --no-warm",
    "db upgrade --no-warm",
    "db stop",
    "remove news key",
    "detach news article",
    "corpus drop news --yes",
    "db downgrade base --yes",
]
COMPUTING = {
    *("dedupe", "compare", "demo", "index", "query", "nearest", "neighbours", "pairs"),
    *("clusters", "review", "track", "attach", "worker", "reconcile", "plan", "rebuild", "stats"),
    *("boilerplate", "check", "warm", "passages", "contamination"),
}
"""Commands that compute signatures, as check does for each document. Their help does not."""
RUN = f"""
import sys
from textsim_db.cli import main
for command in {[*COMMANDS[:-4], *(f"{name} --help" for name in sorted(COMPUTING)), *COMMANDS[-4:]]}:
    sys.argv = ["textsim", *command.split()]
    try:
        main()
    except SystemExit as end:
        assert not end.code, command
    loaded = [name for name in {HEAVY} if name in sys.modules]
    assert not loaded, (command, loaded)
"""


def test_every_command_is_named_here() -> None:
    groups = {name for name, command in each_command() if hasattr(command, "commands")}
    lines = [line.split() for line in COMMANDS if line and line != "--help"]
    named = {" ".join(words[: 2 if words[0] in groups else 1]) for words in lines}
    assert named | COMPUTING == {name for name, _ in each_command()} - groups
    assert not named & COMPUTING


def test_administrative_commands_load_no_kernels(db: ts.Database, tmp_path: Path) -> None:
    corpus = db.create_corpus("news")
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE article (id text PRIMARY KEY, text text)")
    corpus.attach("article", "id", "text")
    corpus.add("key", "some text")
    (tmp_path / "judgements.csv").write_text("a,b,verdict\nx,y,same\n")
    (tmp_path / "judgements.jsonl").write_text('{"a": "x", "b": "z", "verdict": "same"}\n')
    corpus.track()
    db.create_corpus("tenants", scoped=True, keep_for="1 day")
    paths = {"PYTHONPATH": str(Path(ts.__file__).parents[1]), URL_VARIABLE: db.url}
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        cwd=tmp_path,
        env={**os.environ, **paths, DATA_DIR_VARIABLE: str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
