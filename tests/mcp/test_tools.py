"""The tools of a model: their answers are small, are those of SQL, and come from one scope."""

from __future__ import annotations

import asyncio
import json
from itertools import chain
from typing import Any

import httpx2
import pytest

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.mcp import Refused, calling, over_http, over_stdio, tool_server
from textsim_db.mcp.tools import CorpusTools

READING = [
    *("check_before_write", "search", "passages", "verify_quote", "compare", "doubtful", "status")
]
WRITING = ["remember", "judge", "forget"]
TRAIN = "The train to the office leaves at 8:15"
HARBOUR = "Anna moved to Kiel in May and works in the harbour office"
OTHER = "Anna moved to Kiel in May and lives near the harbour office"
CLIENTS = 16


@pytest.fixture
def notes(db: ts.Database) -> ts.Corpus:
    corpus = db.create_corpus(
        "notes",
        shingle="char:5",
        threshold=0.6,
        recall=1,
        is_unique=True,
        unique_from=0.85,
        guards=("numbers", "negations"),
        scoped=True,
        passages=20,
    )
    corpus.add_many([("b1", f"{TRAIN}, says Bert", "bert"), ("b2", HARBOUR, "bert")])
    return corpus


def test_a_rejected_text_is_not_remembered(notes: ts.Corpus) -> None:
    notes.reject("b2", "Bert wants it forgotten")
    tools = CorpusTools(notes, "bert")
    expected = {"outcome": "rejected", "note": "Bert wants it forgotten"}
    assert json.loads(tools.check_before_write(HARBOUR)) == expected
    for force in (False, True):
        answer = json.loads(tools.remember(f"{HARBOUR} now", force=force))
        assert answer | expected | {"is_stored": False, "key": "rejected: b2"} == answer
    sibling = json.loads(tools.check_before_write(f"{HARBOUR}, not in June"))
    assert (sibling["outcome"], sibling["matches"]) == ("new", [])
    assert json.loads(CorpusTools(notes, "anna").remember(HARBOUR))["outcome"] == "new"


def test_the_answers_are_those_of_sql(notes: ts.Corpus, connection: Connection) -> None:
    def rows(statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return connection.execute(statement.encode(), parameters).fetchall()

    async def main() -> None:
        async with calling(tool_server(notes, "anna", write=True)) as call:
            first = await call("remember", text=HARBOUR)
            assert first == {
                "outcome": "new",
                "is_stored": True,
                "key": first["key"],
                "matches": [],
            }
            train = (await call("remember", text=TRAIN))["key"]
            for text, outcome in [
                (f"{HARBOUR}!", "twin"),
                (OTHER, "doubtful"),
                (TRAIN.replace("8", "9"), "sibling"),
                ("Bert sleeps", "new"),
            ]:
                answer = await call("check_before_write", text=text)
                connection.execute(b"BEGIN")
                same = rows(
                    "SELECT outcome, key, similarity, differs"
                    " FROM textsim.add_unique('notes', 'k', %s, scope => 'anna')",
                    text,
                )
                connection.execute(b"ROLLBACK")
                assert {row[0] for row in same} == {answer["outcome"]} == {outcome}
                assert [(m["key"], m["similarity"]) for m in answer["matches"]] == [
                    row[1:3] for row in same if row[1] is not None
                ]
                assert answer == {k: v for k, v in answer.items() if k in ("outcome", "matches")}
            answer = await call("search", text=OTHER, k=1)
            (match,) = answer["matches"]
            assert match["text"] == HARBOUR.lower()
            assert match["differs"] == {"stored": "works in", "yours": "lives near"}
            assert [(match["key"], match["similarity"])] == rows(
                "SELECT key, similarity FROM textsim.nearest('notes', %s, k => 1, scope => 'anna')",
                OTHER,
            )
            answer = await call("passages", text=f"Is it so? {HARBOUR}")
            assert [(each["key"], each["words"], each["text"]) for each in answer["passages"]] == [
                (first["key"], len(HARBOUR), HARBOUR)
            ]
            second = await call("remember", text=OTHER)
            assert second["outcome"] == "doubtful"
            keys = sorted([first["key"], second["key"]])
            (pair,) = (await call("doubtful"))["pairs"]
            assert [(pair["a"], pair["b"], pair["similarity"])] == rows(
                "SELECT a, b, similarity FROM textsim.doubtful('notes')"
            )
            compared = await call("compare", a=keys[0], b=keys[1])
            assert compared == pair
            await call("judge", a=keys[0], b=keys[1], verdict="different", note="where she works")
            assert await call("doubtful") == {"pairs": []}
            with pytest.raises(Refused, match="to replace that judgement, name its verdict"):
                await call("judge", a=keys[0], b=keys[1], verdict="same")
            changed = await call("remember", text=TRAIN.replace("8", "9"), replaces=train)
            assert (changed["outcome"], changed["key"]) == ("new", train)
            forgotten = await call("forget", keys=keys)
            assert (forgotten["documents"], forgotten["judgements"]) == (2, 1)
            assert (await call("status"))["documents"] == 1
            assert rows("SELECT scope, indexed FROM textsim._scopes('notes', NULL)") == [
                ("bert", 2),
                ("anna", 1),
            ]

    asyncio.run(main())


@pytest.mark.parametrize("recall", [1, 0.95])
def test_a_search_returns_no_copies(db: ts.Database, recall: float) -> None:
    corpus = db.create_corpus("c", shingle="char:5", threshold=0.5, recall=recall)
    copies = [f"copy {number:02}" for number in range(30)]
    corpus.add_many([(key, HARBOUR) for key in copies])
    corpus.add_many([("first", f"{HARBOUR}!"), ("other", OTHER.replace("lives", "sings"))])
    corpus.judge("first", "copy 00", "different")
    for key in ("copy 00", "first"):
        corpus.judge("other", key, "different")

    async def main() -> None:
        async with calling(tool_server(corpus)) as call:

            async def search(**arguments: Any) -> list[tuple[str, list[str]]]:
                answer = await call("search", text=HARBOUR, max_bytes=100_000, **arguments)
                return [(match["key"], match.get("copies", [])) for match in answer["matches"]]

            expected = [("copy 00", copies[1:11]), ("first", []), ("other", [])]
            assert await search(k=3) == expected
            assert await search(k=1) == [("copy 00", copies[1:4])]
            assert await search(k=3, copies=True) == [(key, []) for key in copies[:3]]

    asyncio.run(main())


def test_a_twin_is_found_below_many_siblings(db: ts.Database) -> None:
    corpus = db.create_corpus(
        "c",
        shingle="char:5",
        threshold=0.5,
        recall=1,
        is_unique=True,
        unique_from=0.6,
        guards="numbers",
    )
    fact = "The night train {} leaves the harbour station at {}"
    corpus.add_many(
        [(f"sibling {number}", fact.format(number, "dawn")) for number in range(10, 22)]
    )
    corpus.add("twin", fact.format(99, "midnight today"))

    async def main() -> None:
        async with calling(tool_server(corpus)) as call:
            answer = await call("check_before_write", text=fact.format(99, "dawn"))
            assert answer["outcome"] == "twin"
            assert "twin" not in [match["key"] for match in answer["matches"]]

    asyncio.run(main())


@pytest.mark.parametrize("guards", ["numbers,negations", "content"])
def test_a_new_fact_names_the_fact_that_it_may_replace(db: ts.Database, guards: str) -> None:
    corpus = db.create_corpus(
        "facts", shingle="char:5", threshold=0.5, recall=1, is_unique=True, guards=guards
    )

    async def main() -> None:
        async with calling(tool_server(corpus, write=True)) as call:
            await call("remember", text="Anna is 42")
            name = "The train to the office leaves at 8:15 with Bert"
            await call("remember", text=name)
            for tool in ("check_before_write", "remember"):
                answer = await call(tool, text="Anna is now 43")
                (near,) = answer["nearest"]
                assert answer["outcome"] == "new"
                assert near["text"] == "anna is 42"
                assert near["differs"] == {"stored": "42", "yours": "now 43"}
                assert near["guards"] == guards.split(",")[0]
                assert "nearest" not in await call(tool, text="Bert sleeps")
            # No force stores equal words.
            assert "otherwise" not in await call("check_before_write", text="Anna is now 43!")
            # Without the guard content another name is a twin, and the answer shows it.
            answer = await call("remember", text=name.replace("Bert", "Carl"))
            assert answer["matches"][0]["differs"] == {"stored": "bert", "yours": "Carl"}
            assert answer["outcome"] == ("sibling" if guards == "content" else "twin")
            assert ("otherwise" in answer) == (guards != "content")

    asyncio.run(main())


def test_another_scope_can_neither_be_named_nor_reached(notes: ts.Corpus) -> None:
    async def main() -> None:
        async with calling(tool_server(notes, "anna", write=True)) as call:
            own = (await call("remember", text="Anna sings"))["key"]
            for arguments in (
                {"name": "search", "text": HARBOUR, "scope": "bert"},
                {"name": "compare", "a": own, "b": "b1"},
                {"name": "judge", "a": own, "b": "b1", "verdict": "same"},
                {"name": "forget", "keys": [own, "b1"]},
                {"name": "remember", "text": "Anna dances", "replaces": "b1"},
                {"name": "remember", "text": " \n"},
                {"name": "remember", "text": "a\0b"},
                {"name": "search", "text": "x" * 1_000_001},
                {"name": "search", "text": ["x"]},
                {"name": "search"},
                {"name": "drop_corpus"},
            ):
                with pytest.raises(Refused) as refused:
                    await call(**arguments)
                assert len(str(refused.value)) < 250
            found = (await call("search", text=HARBOUR))["matches"]
            assert [match["key"] for match in found] == [own]
            assert (await call("passages", text=HARBOUR)) == {"passages": []}
            assert (await call("verify_quote", text=HARBOUR))["verdict"] == "absent"
            with pytest.raises(Refused, match="no document"):
                await call("verify_quote", text=HARBOUR, key="b2")

    asyncio.run(main())
    assert {each.scope: each.indexed for each in notes.scopes()} == {"anna": 1, "bert": 2}
    assert [notes.scopes(name) for name in ("bert", "none")] == [[("bert", 2, 0)], []]


def test_a_quotation_is_verified_with_the_text_of_its_row(
    db: ts.Database, connection: Connection
) -> None:
    connection.execute(b"CREATE TABLE law (id int PRIMARY KEY, body text NOT NULL)")
    body = "The fee is 50 % of the rent. It shall not rise in the first two years."
    connection.execute(b"INSERT INTO law VALUES (1, %s)", [body])
    laws = db.create_corpus("laws", passages=5)
    laws.attach("law", key="id", text="body")

    async def main() -> None:
        async with calling(tool_server(laws)) as call:
            answers = [
                await call("verify_quote", text=text)
                for text in ("the fee is 50 of the rent", "It shall rise in the first two years")
            ]
        symbols = {"document": "%", "kinds": "symbols"}
        negations = {"document": "not", "kinds": "negations"}
        assert [answer["verdict"] for answer in answers] == ["exact", "altered"]
        assert [answer["differences"] for answer in answers] == [[symbols], [negations]]

    asyncio.run(main())


def test_an_answer_has_the_size_that_was_asked_for(db: ts.Database) -> None:
    corpus = db.create_corpus("news", shingle="word:1", threshold=0.5)
    words = " ".join(f"wórd{number}" for number in range(700))
    corpus.add_many([(f"{number:0>200}", f"{words} {number}") for number in range(30)])

    async def main() -> None:
        async with calling(tool_server(corpus)) as call:
            for size in (500, 4_000, 20_000, 300_000):
                answer = await call("search", text=words, k=30, max_bytes=size, copies=True)
                text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
                assert len(text.encode()) <= size
                assert len(answer["matches"]) + answer.get("left_out", 0) == 30
                assert ("cut" in answer) == (size < 300_000)
            assert len(json.dumps(await call("search", text=words, k=30, copies=True))) < 5_000

    asyncio.run(main())


def test_a_tool_goes_on_after_a_rebuild(notes: ts.Corpus, database_url: str) -> None:
    async def main(other: ts.Corpus) -> None:
        async with calling(tool_server(notes, "bert", write=True)) as call:
            calls: list[tuple[float, str, dict[str, Any]]] = [
                (0.61, "search", {"text": HARBOUR}),
                (0.62, "remember", {"text": "Bert sleeps"}),
                (0.63, "check_before_write", {"text": HARBOUR}),
                (0.64, "judge", {"a": "b1", "b": "b2", "verdict": "different"}),
                (0.65, "compare", {"a": "b1", "b": "b2"}),
                (0.66, "passages", {"text": HARBOUR}),
                (0.67, "doubtful", {}),
                (0.68, "status", {}),
                (0.69, "forget", {"keys": ["b1"]}),
            ]
            for threshold, name, arguments in calls:
                other.rebuild(threshold=threshold)
                await call(name, **arguments)

    with ts.connect(database_url) as db:
        asyncio.run(main(db.corpus("notes")))


def test_a_forced_text_of_equal_words_is_not_stored_and_the_answer_says_why(
    notes: ts.Corpus,
) -> None:
    async def main() -> None:
        async with calling(tool_server(notes, "anna", write=True)) as call:
            for a, b in [
                ("The loss of the store is 5 percent", "The loss of the store is .5 percent"),
                ("Orders > 50 need a signature", "Orders < 50 need a signature"),
            ]:
                await call("remember", text=a)
                assert "note" not in await call("remember", text=b)
                answer = await call("remember", text=b, force=True)
                assert (answer["outcome"], answer["is_stored"]) == ("twin", False)
                assert "write it as a word" in answer["note"]

    asyncio.run(main())


def test_a_forced_text_of_other_order_is_stored_once(db: ts.Database) -> None:
    """Equal shingles are no equal texts; a repeated call stores no copy."""
    one = "Press the red button and press the green lamp and press the bell rope and press the"
    other = "Press the bell rope and press the green lamp and press the red button and press the"
    for settings in ({}, {"language": "auto"}, {"stop_words": ["and", "the"], "shingle": "word:1"}):
        corpus = db.create_corpus("steps", is_unique=True, threshold=0.9, **settings)
        tools = CorpusTools(corpus, None)

        def remember(text: str, tools: CorpusTools = tools) -> dict[str, Any]:
            answer: dict[str, Any] = json.loads(tools.remember(text, force=True))
            return answer

        remember(one)
        assert json.loads(tools.remember(other))["outcome"] == "twin"
        stored = remember(other)
        assert stored["is_stored"], settings
        assert len(corpus) == 2
        for text in (one, other, f"{other}!"):
            again = remember(text)
            assert (again["outcome"], again["is_stored"]) == ("twin", False), settings
            assert "in this order" in again["note"]
        assert len(corpus) == 2
        assert corpus.check() == []
        db.drop_corpus(corpus.name)


def test_the_official_client_calls_a_process(notes: ts.Corpus, database_url: str) -> None:
    async def main() -> None:
        for options, tools in ([], READING), (["--write"], READING + WRITING):
            server = over_stdio(database_url, "notes", "--scope", "bert", *options)
            async with calling(server) as call:
                assert await call.tools() == tools
                answer = await call("search", text=HARBOUR)
                assert answer["matches"][0]["similarity"] == 1
                assert (await call("status"))["documents"] == 2
                if not options:
                    with pytest.raises(Refused, match="this server only reads"):
                        await call("remember", text="Bert cooks")

    asyncio.run(main())


@pytest.mark.more
def test_sixteen_clients_over_http_need_the_token(notes: ts.Corpus, database_url: str) -> None:
    with over_http(database_url, "notes", "--scope", "anna", "--write") as server:

        async def client(number: int) -> Any:
            async with calling(server.transport()) as call:
                outcomes = [await call("remember", text=text) for text in (HARBOUR, f"{TRAIN}!")]
                return [outcome["outcome"] for outcome in outcomes]

        async def main() -> list[Any]:
            return await asyncio.gather(*map(client, range(CLIENTS)))

        outcomes = sorted(chain(*asyncio.run(main())))
        assert outcomes == ["new"] * 2 + ["twin"] * (2 * CLIENTS - 2)
        own = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
        for headers, status in [
            ({**own, "Authorization": ""}, 401),
            ({**own, "Authorization": "Bearer é"}, 401),
            ({**own, "Authorization": f"Bearer {server.token}x"}, 401),
            ({**own, "Authorization": f"Bearer {server.token[:-1]}"}, 401),
            ({**own, "Host": "evil.example"}, 421),
            ({**own, "Host": "127.0.0.1:1"}, 421),
            ({**own, "Origin": "http://evil.example"}, 403),
            ({**own, "Origin": server.address.removesuffix("/mcp")}, 403),
        ]:
            raw = httpx2.Headers(headers, encoding="latin-1")
            response = httpx2.post(server.address, headers=raw, content="{}")
            assert response.status_code == status, headers
            assert server.token not in response.text
        large = httpx2.post(server.address, headers=own, content=b" " * 10_000_000)
        assert large.status_code == 413


def test_a_scope_and_a_short_token_are_refused_at_the_start(
    notes: ts.Corpus, textsim: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 'corpus "notes" is scoped' in textsim("mcp", "notes", status=2).stderr
    for scope in ("", " "):
        assert "--scope is empty" in textsim("mcp", "notes", "--scope", scope, status=2).stderr
    monkeypatch.setenv("TEXTSIM_MCP_TOKEN", "short")  # only HTTP has a token
    assert "run: textsim corpus create facts" in textsim("mcp", "facts", status=2).stderr
    assert "16 characters" in textsim("mcp", "notes", "--http", "0", status=2).stderr
