"""Says of which open issue an issue is possibly a duplicate, unless that is too often wrong."""

import argparse
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
        print(f"#{issue}: no open issue is similar")
        return
    other, *bodies = row
    if is_same is None:
        print(*bodies, sep="\n---\n")
        is_same = input("the same? [y/N] ").lower().startswith("y")
    pair = [str(issue), str(other), "same" if is_same else "different"]
    connection.execute("SELECT textsim.judge('issue', %s, %s, %s)", pair)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["learn", "judge", "say"])
    parser.add_argument("issue", type=int, nargs="*")
    given = parser.parse_args(arguments)
    with ts.connect() as db, psycopg.connect(db.url, autocommit=True) as connection:
        if given.command == "learn":
            corpus = db.corpus("issue")
            corpus.rebuild()
            count = len(corpus.config.boilerplate_values or ())
            print(f"left out: {count} phrases that many of {len(corpus)} issues share")
        least = least_similarity(connection)
        for issue in given.issue:
            if given.command == "judge":
                judge(connection, issue)
            elif given.command == "say":
                print(f"#{issue}: {say(connection, issue, least) or 'nothing to say'}")


if __name__ == "__main__":
    main()
