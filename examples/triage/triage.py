"""Says of which open issue an issue is possibly a duplicate, unless that is too often wrong."""

import sys
from typing import Any

import psycopg

import textsim_db as ts

PRECISION = 0.9
"""The share of comments that must be right."""


def least_similarity(connection: psycopg.Connection[Any]) -> float | None:
    """Return the similarity from which judgements support what is said; None if they support nothing."""
    row = connection.execute("SELECT least_similarity(%s)", [PRECISION]).fetchone()
    return row and row[0]


def say(connection: psycopg.Connection[Any], issue: int, least: float | None) -> str | None:
    """Return the sentence for an issue, or None."""
    row = connection.execute(
        "SELECT id, similarity FROM candidate(%s) WHERE similarity >= %s", [issue, least]
    ).fetchone()
    return row and f"possibly a duplicate of #{row[0]} (similarity {row[1]:.2f})"


def judge(connection: psycopg.Connection[Any], issue: int, is_same: bool | None = None) -> None:
    """Ask whether an issue and its candidate are the same, and record the answer."""
    row = connection.execute(
        "SELECT c.id, i.body, o.body FROM issue i CROSS JOIN candidate(i.id) c "
        "JOIN issue o ON o.id = c.id WHERE i.id = %s",
        [issue],
    ).fetchone()
    if row is None:
        return
    other, *bodies = row
    if is_same is None:
        print(*bodies, sep="\n---\n")
        is_same = input("the same? [y/N] ").lower().startswith("y")
    pair = [str(issue), str(other), "same" if is_same else "different"]
    connection.execute("SELECT textsim.judge('issue', %s, %s, %s)", pair)


def main(command: str, *issues: str) -> None:
    with ts.connect() as db:
        if command == "learn":
            db.corpus("issue").rebuild()
            return
        with psycopg.connect(db.url, autocommit=True) as connection:
            least = least_similarity(connection)
            for issue in map(int, issues):
                if command == "judge":
                    judge(connection, issue)
                elif sentence := say(connection, issue, least):
                    print(f"#{issue}: {sentence}")


if __name__ == "__main__":
    main(*sys.argv[1:])
