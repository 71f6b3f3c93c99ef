"""The processes of an application, which tests run with the code of one version or another."""

from __future__ import annotations

import random
import signal
import sys
import traceback
from typing import Any

import psycopg

import textsim_db as ts
from textsim_db.cli import main

TABLES = """
CREATE TABLE request (process text PRIMARY KEY, count integer NOT NULL);
CREATE TABLE queued (id text PRIMARY KEY, body text);
CREATE TABLE inline (id text PRIMARY KEY, body text);
CREATE TABLE apart (id text PRIMARY KEY, body text);
"""


def prepare(address: str) -> None:
    """Create the tables and corpora of the application."""
    with ts.connect(address) as db, psycopg.connect(address, autocommit=True) as connection:
        connection.execute(TABLES)
        news = db.create_corpus("news", guards=["words"], guard_words=["draft"], passages=5)
        news.attach("queued", "id", "body")
        news.attach("inline", "id", "body", "inline")
        db.create_corpus("unique", is_unique=True).attach("apart", "id", "body")


def serve(address: str, process: str) -> None:
    """Write and search, in Python and SQL, until SIGTERM comes; a failed request ends the process."""
    is_over: list[Any] = []
    signal.signal(signal.SIGTERM, lambda *_: is_over.append(1))
    draw = random.Random(process)
    with ts.connect(address) as db, psycopg.connect(address, autocommit=True) as connection:
        news, unique = db.corpus("news"), db.corpus("unique")
        connection.execute("INSERT INTO request VALUES (%s, 0)", [process])
        while not is_over:
            text = " ".join("".join(draw.choices("aeioklmnrst", k=6)) for _ in range(12))
            key = f"{process} {text[:20]}"
            for table in ("queued", "inline", "apart"):
                row = [f"{table} {key}", text]
                connection.execute(f"INSERT INTO {table} VALUES (%s, %s)".encode(), row)
            news.add(f"added {key}", text)
            assert unique.add_unique(f"twin {key}", text).matches
            expected = {f"inline {key}", f"added {key}"}
            assert expected <= {match.key for match in news.query(text)}
            rows = connection.execute("SELECT key FROM textsim.matches('news', %s)", [text])
            assert expected <= {row[0] for row in rows}
            rows = connection.execute("SELECT key FROM textsim.passages('news', %s)", [text])
            assert expected <= {row[0] for row in rows}
            connection.execute(
                "UPDATE inline SET body = body || ' end' WHERE id = %s", [f"inline {key}"]
            )
            connection.execute("DELETE FROM queued WHERE id = %s", [f"queued {key}"])
            connection.execute("UPDATE request SET count = count + 1 WHERE process = %s", [process])


def work(address: str) -> None:
    """Run a worker until SIGTERM comes."""
    sys.argv = ["textsim", "worker", "--database-url", address]
    try:
        main()
    except SystemExit as error:
        print("exit status", error.code)
        raise
    except BaseException:
        traceback.print_exc()
        raise
