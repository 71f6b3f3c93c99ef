"""Hostile calls show no text of another scope, and write nothing without --write."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from typing import Any

import pytest

import textsim_db as ts
from tests.support.commands import process
from tests.support.connections import Connection, tables_of
from tests.support.hostile_calls import SECRET, hostile_call
from tests.support.mcp import answer_of, calling, tool_server
from tests.support.waiting import PATIENCE_SECONDS

CALLS = 150


@pytest.fixture
def notes(db: ts.Database) -> ts.Corpus:
    settings: dict[str, Any] = {"threshold": 0.4, "recall": 1, "passages": 20, "scoped": True}
    corpus = db.create_corpus(
        "notes", shingle="char:5", is_unique=True, unique_from=0.8, guards=("numbers",), **settings
    )
    corpus.add_many(
        [
            ("a1", "Anna moved to Kiel in May and works in the harbour office", "anna"),
            ("a2", "Anna moved to Kiel in May and lives near the harbour office", "anna"),
            ("b1", f"Bert hides the {SECRET} papers in the blue box under the stairs", "bert"),
            ("b2", f"Bert hides no {SECRET} papers in the red box under the stairs", "bert"),
        ]
    )
    corpus.judge("b1", "b2", "different", note=SECRET)
    return corpus


def contents(connection: Connection, bert_only: bool) -> list[object]:
    """Return the rows of all tables of the schema, or those of the scope that is not served."""
    document = tables_of(connection, "notes")[0]
    if bert_only:
        statement = f"SELECT d::text, xmin::text FROM {document} d WHERE scope = 'bert'"
        judged = "SELECT j::text FROM textsim.judgement j WHERE a LIKE 'b%' AND b LIKE 'b%'"
        return [connection.execute(each.encode()).fetchall() for each in (statement, judged)]
    tables = connection.execute(
        "SELECT oid::regclass::text FROM pg_class"
        " WHERE relnamespace = 'textsim'::regnamespace AND relkind = 'r' ORDER BY 1"
    ).fetchall()
    assert (document,) in tables
    return [
        connection.execute(
            f"SELECT t::text, xmin::text FROM {name} t ORDER BY 1".encode()
        ).fetchall()
        for (name,) in tables
    ]


@pytest.mark.parametrize("id_", [7, "seven"])
def test_a_request_that_cannot_be_read_is_answered(
    notes: ts.Corpus, database_url: str, id_: object
) -> None:
    arguments = {"name": "search", "arguments": {"text": "a \ud800 surrogate"}}
    requests = [
        json.dumps({"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": arguments}),
        "not JSON",
    ]
    with process("mcp", "notes", "--scope", "anna", url=database_url) as server:
        told, _ = server.communicate("\n".join([*requests, ""]), PATIENCE_SECONDS)
    answers = [json.loads(line) for line in told.splitlines()]
    assert [answer["id"] for answer in answers] == [id_, None]
    assert "the request cannot be read: Invalid JSON" in answers[0]["error"]["message"]


@pytest.mark.more
@pytest.mark.parametrize("write", [False, True])
def test_hostile_calls_reach_no_other_scope(
    notes: ts.Corpus, connection: Connection, rng: random.Random, write: bool
) -> None:
    before = contents(connection, bert_only=write)

    async def main() -> Counter[str]:
        outcomes: Counter[str] = Counter()
        async with calling(tool_server(notes, "anna", write)) as call:
            for _ in range(CALLS):
                name, arguments = hostile_call(rng)
                text, is_error = await answer_of(call.client, name, arguments)
                shown = (name, str(arguments)[:500], text)
                assert SECRET not in text, shown
                assert "the tool failed" not in text, shown
                most = 1_000 if is_error else arguments.get("max_bytes", 4_000)
                assert len(text.encode()) <= most, shown
                assert is_error or json.loads(text), shown
                outcomes["refused" if is_error else "answered"] += 1
        return outcomes

    outcomes = asyncio.run(main())
    assert min(outcomes["refused"], outcomes["answered"]) > CALLS // 10, outcomes
    assert contents(connection, bert_only=write) == before
    assert notes.check() == []
