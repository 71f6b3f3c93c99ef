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
    "corpus list",
    "corpus show news",
    "status",
    "pending",
    "db url",
    "attach --help",
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
    paths = {"PYTHONPATH": str(Path(ts.__file__).parents[1]), URL_VARIABLE: db.url}
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        env={**os.environ, **paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
