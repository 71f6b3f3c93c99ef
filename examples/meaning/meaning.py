"""Show the matches by words and by meaning, and the guards, on the facts of facts.txt."""

import argparse
import logging
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import psycopg
import wordllama

import textsim_db as ts

logging.getLogger().setLevel(logging.WARNING)  # wordllama logs more
FOLDER = Path(__file__).parent
# Static vectors of 256 numbers, which the wheel brings: a stand-in for the model that you have.
MODEL = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
# A fact, the same with another word, the same in other words, and a sibling, which says something else.
SAME = 3

Found = tuple[float | None, float | None, bool]
"""The similarity of two facts, the cosine of their vectors, and whether guards keep them apart."""
Rule = Callable[[Found], bool]
RULES: dict[str, Rule] = {
    "words": lambda pair: pair[0] is not None,
    "meaning": lambda pair: pair[1] is not None,
    "both": lambda pair: True,
}


def add(connection: psycopg.Connection[Any], bodies: Sequence[str]) -> list[int]:
    """Add facts with their vectors, and return their ids."""
    vectors = MODEL.embed(list(bodies)).tolist()
    statement = "INSERT INTO fact (body, embedding) VALUES (%s, %s) RETURNING id"
    rows = zip(bodies, map(str, vectors), strict=True)
    return [connection.execute(statement, row).fetchall()[0][0] for row in rows]


def find(
    connection: psycopg.Connection[Any], ids: Sequence[int], least_cosine: float
) -> dict[tuple[int, int], Found]:
    """Ask for the similar facts of each fact, and return the pairs that words or meaning finds."""
    found: dict[tuple[int, int], Found] = {}
    for fact_id in ids:
        rows = connection.execute(
            "SELECT id, similarity, cosine, differs <> '{}' FROM similar_facts(%s, %s)",
            [fact_id, least_cosine],
        )
        for other, *pair in rows:
            found[min(fact_id, other), max(fact_id, other)] = tuple(pair)
    return found


def figures(
    found: dict[tuple[int, int], Found], same: set[tuple[int, int]]
) -> list[tuple[str, str, float, float]]:
    """Return the precision and the recall of each rule, without guards and with them."""
    table = []
    for name, rule in RULES.items():
        for guards in ("no", "yes"):
            kept = {
                pair
                for pair, each in found.items()
                if rule(each) and not (guards == "yes" and each[2])
            }
            right = len(kept & same)
            table.append((name, guards, right / len(kept), right / len(same)))
    return table


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=f"{__doc__} The table is emptied first.")
    parser.add_argument("least_cosine", type=float, nargs="?", default=0.7)
    least_cosine = parser.parse_args(arguments).least_cosine
    lines = (FOLDER / "facts.txt").read_text("utf-8").splitlines()
    facts = [line.split(" | ") for line in lines]
    with ts.connect() as db, psycopg.connect(db.url) as connection:
        connection.execute("DELETE FROM fact")
        ids = iter(add(connection, [body for fact in facts for body in fact]))
        groups = [[next(ids) for _ in fact] for fact in facts]
        same = {pair for group in groups for pair in combinations(group[:SAME], 2)}
        found = find(connection, [fact_id for group in groups for fact_id in group], least_cosine)
        print("found by  guards  precision  recall")
        for name, guards, precision, recall in figures(found, same):
            print(f"{name:<9} {guards:<6} {precision:10.2f} {recall:7.2f}")


if __name__ == "__main__":
    main()
