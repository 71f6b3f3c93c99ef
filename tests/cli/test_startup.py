"""Administrative commands load no kernels, so they start quickly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psycopg

import textsim_db as ts
from textsim_db.database import URL_VARIABLE

HEAVY = ("numba", "numpy", "scipy", "textsim_db.text.unicode_data")
COMMANDS = [
    "",
    "--help",
    "corpus list",
    "corpus show news",
    "corpus list --format jsonl",
    "status",
    "status --scopes tenants",
    "status --prometheus",
    "status --max-lag 1000",
    "pending",
    "pending --retry",
    "judgements list news",
    "judgements contradictions news",
    "untrack news",
    "expire tenants",
    "doctor",
    "db url",
    "db sql",
    "db install --help",
    "attach --help",
    "worker --help",
    "detach news article",
    "corpus drop news --yes",
]
RUN = f"""
import sys
from textsim_db.cli import main
for command in {COMMANDS}:
    sys.argv = ["textsim", *command.split()]
    try:
        main()
    except SystemExit as end:
        assert not end.code, command
    loaded = [name for name in {HEAVY} if name in sys.modules]
    assert not loaded, (command, loaded)
"""


def test_administrative_commands_load_no_kernels(db: ts.Database) -> None:
    corpus = db.create_corpus("news")
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE article (id text PRIMARY KEY, text text)")
    corpus.attach("article", "id", "text")
    corpus.add("key", "some text")
    corpus.track()
    db.create_corpus("tenants", scoped=True, keep_for="1 day")
    paths = {"PYTHONPATH": str(Path(ts.__file__).parents[1]), URL_VARIABLE: db.url}
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        env={**os.environ, **paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
