"""Documents whose guards differ match, and are never merged."""

from __future__ import annotations

import json
import random
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import polars
import pytest
from psycopg.errors import UniqueViolation

import textsim_db as ts
from tests.support.commands import Textsim
from tests.support.connections import Connection
from tests.support.guarded_texts import GUARD_FILLER, GUARD_WORDS, guard_of, guarded_texts, merging
from tests.support.judgements import expected_clusters, random_judgements
from tests.support.rebuilds import stored_rows
from tests.support.sampling import sample
from tests.support.truth import brute_force
from textsim_db.results import Answer, Outcome
from textsim_db.settings.named_values import Linkage

INVOICE = "the invoice number {} was {}paid by the customer on monday in {}"
TEXTS = {
    "first": INVOICE.format(4711, "", "full"),
    "other number": INVOICE.format(4712, "", "full"),
    "same": INVOICE.format(4711, "", "part"),
    "negated": INVOICE.format(4711, "not ", "full"),
}
SIMILAR = [("first", "negated"), ("first", "other number"), ("first", "same"), ("negated", "same")]


@pytest.mark.parametrize("recall", [0.95, 1.0], ids=["bands", "exact"])
def test_siblings_match_and_do_not_merge(
    db: ts.Database, connection: Connection, recall: float
) -> None:
    corpus = db.create_corpus("c", threshold=0.5, recall=recall, guards="numbers,negations")
    corpus.add_many(TEXTS)
    assert [pair[:2] for pair in corpus.pairs()] == SIMILAR
    assert_searches_tell_what_differs(corpus, connection)
    for linkage in Linkage:
        found = [cluster.keys for cluster in corpus.clusters(linkage=linkage)]
        rows = connection.execute(
            "SELECT key FROM textsim.clusters('c', linkage => %s)", [linkage.value]
        )
        assert found == [tuple(key for (key,) in rows)] == [("first", "same")]
    assert [row[:2] for row in corpus.duplicates()] == [("same", "first")]
    assert corpus.check() == []
    corpus.rebuild(guards="")
    assert [cluster.keys for cluster in corpus.clusters()] == [tuple(sorted(TEXTS))]
    corpus.rebuild(guards="words", guard_words=["Part"])
    assert [cluster.keys for cluster in corpus.clusters()] == [("first", "negated", "other number")]


def test_a_rebuild_turns_guards_on_and_off(db: ts.Database, rng: random.Random) -> None:
    """The corpus then stores what a new corpus stores, and merges what it merges."""
    documents = guarded_texts(rng, 150)
    corpus = db.create_corpus("c", threshold=0.6, **BANDS)
    corpus.add_many(documents)
    every = ["numbers", "negations", "words", "content"]
    for guards in (every, ["negations"], [], every[:2], []):
        settings: dict[str, Any] = {
            "guards": guards,
            "guard_words": GUARD_WORDS if "words" in guards else [],
            "guard_fillers": [GUARD_FILLER] if "content" in guards else [],
        }
        corpus.rebuild(**settings)
        new = db.create_corpus("new", threshold=0.6, **BANDS, **settings)
        new.add_many(documents)
        assert stored_rows(db, "c") == stored_rows(db, "new")
        assert list(corpus.clusters()) == list(new.clusters()) != []
        assert corpus.check() == []
        db.drop_corpus("new")


def assert_searches_tell_what_differs(corpus: ts.Corpus, connection: Connection) -> None:
    differs = {"first": (), "other number": ("numbers",), "same": (), "negated": ("negations",)}
    matches = corpus.query(TEXTS["first"])
    assert {match.key: match.differs for match in matches} == differs
    assert corpus.query_many([TEXTS["first"]]) == [matches]
    sql = "SELECT key, differs FROM textsim.{}"
    rows = connection.execute(sql.format("matches('c', %s)").encode(), [TEXTS["first"]])
    assert {key: tuple(kinds) for key, kinds in rows} == differs
    del differs["first"]
    assert {match.key: match.differs for match in corpus.neighbours("first")} == differs
    rows = connection.execute(sql.format("neighbours('c', 'first')").encode())
    assert {key: tuple(kinds) for key, kinds in rows} == differs
    for key, kinds in differs.items():
        row = connection.execute("SELECT textsim.differs('c', %s, 'first')", [key]).fetchone()
        assert row == (list(kinds),)
    explanation = corpus.explain("other number", "negated")
    assert explanation.guards == {"numbers": (["4712"], ["4711"]), "negations": ([], ["1"])}
    both = connection.execute("SELECT textsim.differs('c', 'other number', 'negated')").fetchone()
    assert both == (["numbers", "negations"],)
    if corpus.config.is_exact:
        assert [match.differs for match in corpus.nearest(TEXTS["same"])] == [
            (),
            (),
            ("negations",),
            ("numbers",),
        ]
        rows = connection.execute(sql.format("nearest('c', %s)").encode(), [TEXTS["same"]])
        assert [kinds for _, kinds in rows] == [[], [], ["negations"], ["numbers"]]


def test_a_unique_corpus_stores_siblings(db: ts.Database, connection: Connection) -> None:
    for recall in (0.95, 1.0):
        corpus = db.create_corpus(
            f"c{recall}",
            threshold=0.5,
            recall=recall,
            is_unique=True,
            guards=["numbers", "negations"],
        )
        assert [twin[:2] for twin in corpus.add_many(TEXTS).twins] == [("same", "first")]
        arguments = {"corpus": corpus.name, **TEXTS, "free": INVOICE.format(5, "", "full")}
        rows = connection.execute(
            "SELECT key, standing FROM textsim.twins_of(%(corpus)s, '{x,y,z}', "
            "ARRAY[%(same)s, %(free)s, %(free)s])",
            arguments,
        ).fetchall()
        assert rows == [("x", "first"), ("z", "y")]
        for key, text in (("x", TEXTS["same"]), ("y", arguments["free"])):
            added = connection.execute(
                "SELECT outcome, key FROM textsim.add_unique(%s, %s, %s)", [corpus.name, key, text]
            ).fetchall()
            expected = [("twin", "first")] if key == "x" else [("sibling", "first")]
            assert added[:1] == expected
        assert corpus.check() == []


def test_a_chain_of_judgements_answers_for_its_ends(
    db: ts.Database, connection: Connection
) -> None:
    corpus = db.create_corpus("c", threshold=0.5, is_unique=True, guards=["numbers"])
    for number, key in enumerate("abc"):
        corpus.add(key, INVOICE.format(number, "", "full"))
    corpus.judge("a", "b", "same")
    # The judgement of the text of 7 is stale with that of 8.
    for number, expected in ((7, ["a", "b"]), (8, ["a", "b"]), (9, [])):
        text = INVOICE.format(number, "", "full")
        query = "SELECT key FROM textsim.add_unique('c', 'c', %s)"
        rows = connection.execute(query, [text]).fetchall()
        assert sorted(key for (key,) in rows if key) == expected
        if number == 7:
            corpus.judge("b", "c", "same")
        else:
            corpus.judge("b", "c", "same", replaces="same", any_text=True)


def test_a_stop_word_that_a_guard_counts_stays(db: ts.Database, connection: Connection) -> None:
    settings = {"guards": ["negations"], "stop_words": ["not", "the"]}
    corpus = db.create_corpus("python", **settings)  # type: ignore[arg-type]
    connection.execute(
        "SELECT textsim.create_corpus('sql', guards => '{negations}', stop_words => '{not,the}')"
    )
    assert corpus.config == db.corpus("sql").config
    assert corpus.config.stop_words == ("the",)
    content = db.create_corpus("content", guards="content", stop_words=["the", "with", "my"])
    assert content.config.stop_words == ("the",)
    with pytest.raises(ts.ConfigurationError, match='leaves out the stop word "the"'):
        corpus.rebuild(guards="words", guard_words=["the"])


OF_A_CORPUS = {"scoped", "passages"}
"""The settings that files and frames do not have."""
EXACT: dict[str, Any] = {"recall": 1.0, "shingle": "word:1", "guards": ("numbers", "negations")}
BANDS: dict[str, Any] = {"num_hashes": 96, "bands": 48, "rows": 2, "shingle": "word:1"}
"""Enough bands to miss no pair."""
SETTINGS: list[dict[str, Any]] = [
    EXACT,
    EXACT | {"guards": ("numbers", "words"), "guard_words": GUARD_WORDS, "scoped": True},
    BANDS | {"guards": ("negations",)},
    EXACT | {"guards": ("content",), "guard_fillers": [GUARD_FILLER]},
    EXACT | {"shingle": "char:3", "passages": 20},
    BANDS | {"shingle": "word:2", "guards": ("numbers",), "scoped": True},
]


@pytest.mark.parametrize("settings", sample(SETTINGS, 5, "more"), ids=str)
def test_every_way_to_merge_agrees_with_brute_force(
    db: ts.Database, connection: Connection, rng: random.Random, settings: dict[str, Any]
) -> None:
    guards = settings["guards"]
    texts = guarded_texts(rng, 150)
    scopes = {key: rng.choice("ab") if settings.get("scoped") else None for key in texts}
    documents = [
        (key, text) if scopes[key] is None else (key, text, scopes[key])
        for key, text in texts.items()
    ]
    corpus = db.create_corpus("c", threshold=0.6, **settings)
    corpus.add_many(documents)
    listed = {(a, b) for a, b, _ in corpus.pairs()}
    matches = brute_force(texts, settings["shingle"], 0.6)
    assert listed == {(a, b) for a, b in matches if scopes[a] == scopes[b]}
    merged = merging(texts, settings["shingle"], 0.6, guards)
    pairs = {pair: value for pair, value in merged.items() if pair in listed}
    assert 0 < len(pairs) < len(listed)
    judgements = random_judgements(rng, [*texts], listed, 30)
    for (a, b), verdict in judgements.items():
        if scopes.get(a) == scopes.get(b):
            corpus.judge(a, b, verdict)
    judgements = {(j.a, j.b): j.verdict for j in corpus.judgements()}
    for linkage in ("single", "complete", "kept"):
        for judged in ({}, judgements):
            expected = expected_clusters(scopes, pairs, judged, linkage, sorted(texts))
            found = list(corpus.clusters(linkage=linkage, judgements=bool(judged)))
            assert found == expected, (linkage, judged)
            rows = connection.execute(
                'SELECT cluster, array_agg(key ORDER BY key COLLATE "C") '
                "FROM textsim.clusters('c', linkage => %s, judgements => %s) GROUP BY cluster",
                [linkage, bool(judged)],
            )
            assert sorted(tuple(keys) for _, keys in rows) == sorted(c.keys for c in expected)
        removed = list(corpus.duplicates(linkage=linkage))
        query = "SELECT key, kept, similarity FROM textsim.duplicates('c', linkage => %s)"
        assert sorted(connection.execute(query, [linkage])) == sorted(removed)
        for each in removed:
            assert linkage == "single" or (min(each[:2]), max(each[:2])) in pairs


@pytest.mark.parametrize("settings", sample(SETTINGS, 5, "more"), ids=str)
def test_every_way_to_keep_twins_out_agrees_with_brute_force(
    textsim: Textsim,
    db: ts.Database,
    connection: Connection,
    rng: random.Random,
    settings: dict[str, Any],
) -> None:
    """Each way stores, in the order of keys, what merges with no document before it."""
    settings = {"threshold": 0.6, **settings}
    guards, scoped = settings["guards"], settings.get("scoped", False)
    texts = guarded_texts(rng, 120)
    scopes = {key: rng.choice("ab") if scoped else None for key in texts}
    pairs = merging(texts, settings["shingle"], 0.6, guards)
    pairs = {(a, b): value for (a, b), value in pairs.items() if scopes[a] == scopes[b]}
    clusters = expected_clusters(scopes, pairs, {}, "kept", sorted(texts))
    kept = set(texts) - {key for c in clusters for key in c.keys if key != c.kept}
    assert 2 < len(kept) < len(texts) - 2
    documents: list[Any] = [(key, text, *([scopes[key]] * scoped)) for key, text in texts.items()]

    def stored(name: str) -> set[str]:
        corpus = db.corpus(name)
        assert corpus.check() == []
        return {key for key in texts if key in corpus}

    names = ("sql", "python", "single", "list", "table")
    for name in names:
        db.create_corpus(name, is_unique=True, **settings)
    db.corpus("python").add_many(documents)
    for key, text, *scope in documents:
        connection.execute(
            "SELECT FROM textsim.add_unique('sql', %s, %s, %s)", [key, text, *(scope or [None])]
        )
        db.corpus("single").add_unique(key, text, *scope)
    twins = {
        key
        for (key,) in connection.execute(
            "SELECT key FROM textsim.twins_of('list', %s, %s, %s::text[])",
            [[*texts], [*texts.values()], [*scopes.values()] if scoped else None],
        )
    }
    assert set(texts) - twins == kept
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text, scope text)")
    db.corpus("table").attach("t", "id", "body", scope="scope" if scoped else None)
    for key, text in texts.items():
        with nullcontext() if key in kept else pytest.raises(UniqueViolation):
            connection.execute("INSERT INTO t VALUES (%s, %s, %s)", [key, text, scopes[key]])
    for name in ("sql", "python", "single", "table"):
        assert stored(name) == kept, name
    # Files and frames.
    rows = [{"id": key, "text": text, "user": scopes[key]} for key, text in texts.items()]
    half = len(rows) // 2
    for name, part in (("all", rows), ("old", rows[:half]), ("new", rows[half:])):
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    own = {name: value for name, value in settings.items() if name not in OF_A_CORPUS}
    options = [
        option
        for name, value in own.items()
        for option in (
            "--guard" if name == "guards" else "--" + name.replace("_", "-"),
            ",".join(value) if isinstance(value, tuple) else str(value),
        )
    ]
    user = ["--scope", "user"] if scoped else []
    for command in (
        ["dedupe", "all.jsonl", *options],
        ["dedupe", "old.jsonl", "new.jsonl", *options],
        ["dedupe", "new.jsonl", "--against", "earlier"],
    ):
        if "earlier" in command:
            db.create_corpus("earlier", **settings).add_many(
                d for d in documents[:half] if d[0] in kept
            )
        textsim(*command, *user, "-o", "out.jsonl")
        lines = Path("out.jsonl").read_text().splitlines()
        found = {json.loads(line)["id"] for line in lines}
        assert found == (
            kept & {row["id"] for row in rows[half:]} if "earlier" in command else kept
        )
    frame, _ = ts.dedupe_frame(
        polars.DataFrame(rows), "text", key="id", scope="user" if scoped else None, **own
    )
    assert set(frame["id"]) == kept


@pytest.mark.parametrize(
    ("settings", "unique_from"),
    sample(zip(SETTINGS, [None, 0.8, 0.8, 0.8, None, None], strict=True), 5, "more"),
    ids=str,
)
def test_the_answer_to_a_write_agrees_with_brute_force(
    db: ts.Database,
    connection: Connection,
    rng: random.Random,
    settings: dict[str, Any],
    unique_from: float | None,
) -> None:
    texts = guarded_texts(rng, 80)
    scoped = settings.get("scoped", False)
    scopes = {key: rng.choice("ab") if scoped else None for key in texts}
    pairs = brute_force(texts, settings["shingle"], 0.6)
    guards = {key: guard_of(text, settings["guards"]) for key, text in texts.items()}
    judged = set(random_judgements(rng, [*texts], pairs, 60))
    corpora = [
        db.create_corpus(name, threshold=0.6, is_unique=True, unique_from=unique_from, **settings)
        for name in ("sql", "python")
    ]
    for a, b in judged:
        for corpus in corpora:
            corpus.judge(a, b, "unsure")
    stored: list[str] = []
    outcomes: set[str] = set()
    for key, text in texts.items():
        raised = rng.choice([None, 0.9])
        twins_from = max(unique_from or 0.6, raised or 0)
        found = {
            other: pairs[other, key]
            for other in stored
            if (other, key) in pairs and scopes[other] == scopes[key]
        }
        equal = {other: value for other, value in found.items() if guards[other] == guards[key]}
        twins = {other: value for other, value in equal.items() if value >= twins_from}
        doubtful = {o: value for o, value in equal.items() if (o, key) not in judged}
        siblings = {o: v for o, v in found.items() if o not in equal and (o, key) not in judged}
        rows = connection.execute(
            "SELECT outcome, key, similarity, differs "
            "FROM textsim.add_unique('sql', %s, %s, %s, unique_from => %s)",
            [key, text, scopes[key], raised],
        ).fetchall()
        answer = corpora[1].add_unique(key, text, scopes[key], unique_from=raised)
        assert answer.outcome == rows[0][0]
        assert [(match.key, match.similarity, list(match.differs)) for match in answer.matches] == [
            row[1:] for row in rows if row[1] is not None
        ]
        of_kind = {kind: {k: v for o, k, v, _ in rows if o == kind} for kind, *_ in rows}
        outcomes.update(of_kind)
        if twins:
            assert of_kind == {"twin": twins}
            continue
        stored.append(key)
        best = sorted(doubtful.items(), key=lambda item: (-item[1], item[0]))[:10]
        assert list(of_kind.get("doubtful", {}).items()) == best
        others = [o for o in stored if scopes[o] == scopes[key] and guards[o] != guards[key]]
        named = of_kind.get("sibling", {})
        assert named.items() <= siblings.items()
        assert len(others) > 3 or named == dict([*siblings.items()][: 10 - len(best)])
        for outcome, _, _, differs in rows:
            assert bool(differs) == (outcome == "sibling")
    assert Outcome.TWIN in outcomes
    # Bands have few candidates of low similarity. Texts of one content are rarely doubtful.
    expected = {Outcome.SIBLING, Outcome.DOUBTFUL}
    if settings["guards"] == ("content",):
        expected = {Outcome.SIBLING}
    assert "bands" in settings or expected <= outcomes
    again = texts[stored[0]], scopes[stored[0]]
    assert corpora[1].add_unique(stored[0], *again) == Answer(Outcome.UNCHANGED, [])
    assert [corpus.check() for corpus in corpora] == [[], []]
