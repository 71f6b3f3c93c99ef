"""No statement compares each element of an array with all elements of another, or with a whole table.

A text of 500,000 words has as many shingles, so such a statement would take minutes. A short text shows
the same plans, because most functions plan without looking at the values.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

import textsim_db as ts

WORDS = 100
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\\.|[{}()\[\]]|(?:[^\s{}()\[\]\\]|\\.)+', re.DOTALL)
CLOSING = {"{": "}", "(": ")", "[": "]"}
INNER = {"FUNCTIONSCAN", "VALUESSCAN", "MATERIAL", "RESULT", "PROJECTSET", "SUBQUERYSCAN"}

Node = dict[str, Any]


def parse(printed: str) -> Any:
    """Read a plan as debug_print_plan prints it: nodes as dicts, and all other groups as lists."""
    tokens = iter(TOKEN.findall(printed))
    return read_group(tokens, "")


def read_group(tokens: Iterator[str], closing: str) -> Any:
    items: list[Any] = []
    for token in tokens:
        if token == closing:
            break
        items.append(read_group(tokens, CLOSING[token]) if token in CLOSING else token)
    return as_node(items) if closing == "}" else items


def as_node(items: list[Any]) -> Node:
    node: Node = {"type": items[0]}
    name = ""
    for item in items[1:]:
        if isinstance(item, str) and item.startswith(":"):
            name = item.rpartition(".")[2].removeprefix(":")
            node[name] = []
        else:
            node[name].append(item)
    return node


def within(part: Any) -> Iterator[Node]:
    """Yield the nodes of a part of a plan."""
    if isinstance(part, dict):
        yield part
        part = list(part.values())
    if isinstance(part, list):
        for item in part:
            yield from within(item)


def faults(plan: Any) -> Iterator[str]:
    for node in within(plan):
        if node["type"] == "FUNCTIONSCAN":
            conditions = {part["type"] for part in within(node["qual"])}
            if "SCALARARRAYOPEXPR" in conditions:
                yield "an element is compared with all elements of an array"
        # A join without a condition has all pairs as its result, such as values and rounds of hashing.
        if node["type"] == "NESTLOOP" and list(within(node["joinqual"])):
            (inner,) = (child for child in node["righttree"] if isinstance(child, dict))
            if inner["type"] in INNER:
                yield f"the rows of a {inner['type']} are read again for each row"


def relations(plan: Any) -> set[str]:
    """Return the oids of the tables that a statement names."""
    ((oids,),) = (node["relationOids"] for node in within(plan) if "relationOids" in node)
    return set(oids[1:]) if isinstance(oids, list) else {"none"}


class PlansOf:
    """Collects the plans of all statements that the server plans, those of functions included."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.printed: list[str] = []
        self.large = set(self.oids_of("textsim.word_1", "textsim.common"))
        connection.add_notice_handler(self.keep)
        for name, value in (
            ("client_min_messages", "log"),
            ("debug_pretty_print", "off"),
            ("debug_print_plan", "on"),
        ):
            connection.execute(f"SET {name} = {value}".encode())

    def keep(self, message: psycopg.errors.Diagnostic) -> None:
        if message.message_primary == "plan:":
            self.printed.append(message.message_detail or "")

    def oids_of(self, *names: str) -> Iterator[str]:
        for name in names:
            row = self.connection.execute("SELECT %s::regclass::oid::text", [name]).fetchone()
            assert row is not None
            yield row[0]

    def check(self, statement: str, *parameters: object) -> Any:
        """Run a statement, and return its first value; assert that no plan of it has a fault."""
        self.printed.clear()
        cursor = self.connection.execute(statement.encode(), parameters or None)
        rows = cursor.fetchall() if cursor.description else []
        assert self.printed, "no plan was printed"
        for printed in self.printed:
            plan = parse(printed)
            assert list(faults(plan)) == [], f"{statement}: {printed}"
            reads_all = any(node["type"] == "SEQSCAN" for node in within(plan))
            assert not (reads_all and relations(plan) <= self.large), f"{statement}: {printed}"
        return rows[0][0] if rows else None


@pytest.mark.more
@pytest.mark.sampled
@pytest.mark.parametrize("unit", ["word:3", "word:5", "char:5"])
@pytest.mark.parametrize("is_unique", [False, True], ids=["plain", "unique"])
@pytest.mark.parametrize("recall", [0.9, 1.0], ids=["banded", "exact"])
def test_no_statement_compares_all_elements_of_two_arrays(
    db: ts.Database, rng: random.Random, unit: str, is_unique: bool, recall: float
) -> None:
    db.create_corpus("c", shingle=unit, recall=recall, is_unique=is_unique, passages=8)
    words = [f"w{rng.randrange(10**6)}" for _ in range(WORDS)]
    changed = [*words[: WORDS - 5], *["other", "words", "at", "the", "end"]]
    text, near = " ".join(words), " ".join(changed)
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE textsim.word_1, textsim.common")  # as they are: empty
        plans = PlansOf(connection)
        assert plans.check("SELECT textsim.add('c', 'a', %s)", text) is True
        for _ in range(2):  # first with a document that is stored as text, then with word ids
            assert plans.check("SELECT key FROM textsim.matches('c', %s)", near) == "a"
            assert plans.check("SELECT key FROM textsim.candidates('c', %s)", near) == "a"
            assert plans.check("SELECT key FROM textsim.passages('c', %s)", near) == "a"
            plans.check("SELECT key FROM textsim.neighbours('c', 'a')")
            plans.check("CALL textsim.index_pending('c')")
        assert plans.check("SELECT textsim.add('c', 'a', %s)", near) is True
        plans.check("SELECT textsim.jaccard('c', %s, %s)", text, near)
        assert plans.check("SELECT textsim.remove('c', 'a')") is True
    assert db.corpus("c").check() == []
