"""Damage to a database by hand; what check says of it; and the way out that it names."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

import psycopg

import textsim_db as ts
from tests.support.commands import Textsim

FOX = "a quick brown fox jumps over the lazy dog near the river bank on day"


class Finding(NamedTuple):
    """A printed finding: the subject with its kind, and the way out."""

    subject: str
    remedy: str


def check(textsim: Textsim) -> list[Finding]:
    result = textsim("check", "--format", "jsonl", status=None)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == bool(rows), result.output
    return [Finding(f"{row['kind']} {row['subject']}", row["remedy"]) for row in rows]


def follow(remedy: str, url: str) -> None:
    """Do what a finding says: SQL and commands, separated by semicolons."""
    for part in re.split(r"; (?:then:? )?", remedy.replace("once that is mended: ", "")):
        if re.fullmatch(r"attach .*again.*", part):
            reattach(url)
        elif part.startswith("add documents of no table again"):
            continue
        elif part.startswith("textsim "):
            with ts.connect(url) as db:
                run_command(db, url, *part.split()[1:])
        else:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(part.encode())


def run_command(db: ts.Database, url: str, *command: str) -> None:
    match command:
        case ("db", "install"):
            ts.install(url)
        case ("rebuild", name):
            db.corpus(name).rebuild()
        case ("reconcile", name):
            db.corpus(name).reconcile()
        case ("detach", name, table):
            db.corpus(name).detach(table)
        case ("check",):
            pass
        case _:
            raise AssertionError(command)


def reattach(url: str) -> None:
    """Attach both tables as they were, if they are not attached."""
    with psycopg.connect(url, autocommit=True) as connection:
        for corpus, table, mode in (("news", "post", "queue"), ("unique", "offer", "inline")):
            attached = "SELECT FROM textsim.sources WHERE relation = %s::regclass"
            if connection.execute(attached, [table]).fetchone() is None:
                attach = "SELECT textsim.attach(%s, %s, 'id', 'body', %s)"
                connection.execute(attach, [corpus, table, mode])
    with ts.connect(url) as db:
        db.worker().run(until_idle=True)


def damage(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        # Each place of damage may be protected.
        connection.execute("SET session_replication_role = replica")
        cursor = connection.execute(statement.encode())
        assert cursor.rowcount != 0, statement


def mend(textsim: Textsim, url: str, place: str) -> None:
    """Check that a place is named, and follow the ways out until nothing is wrong."""
    findings = check(textsim)
    assert place in [each.subject for each in findings]
    for _ in range(3):
        for remedy in dict.fromkeys(each.remedy for each in findings):
            follow(remedy, url)
        findings = check(textsim)
        if not findings:
            return
    raise AssertionError(findings)
