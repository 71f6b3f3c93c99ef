"""pairs() and clusters() of texts in memory: the result of a corpus, without a database."""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import textsim_db as ts
from tests.support.commands import Textsim
from tests.support.sampling import sample
from textsim_db.cluster import loaded_documents
from textsim_db.cluster.keep_rule import Preference
from textsim_db.dedupe.against_corpora import JudgedKeys
from textsim_db.dedupe.removals import Document, Rule, deduplicate
from textsim_db.results import Cluster
from textsim_db.settings.named_values import Linkage
from textsim_db.text.stop_words import with_lists

WORDS = [
    f"{a}{b}" for a in ("rain", "sun", "sea", "ночь", "जल", "日") for b in ("", "a", "b", "c", "d")
]
SETTINGS: dict[str, dict[str, Any]] = {
    "bands": {},
    "exact": {"shingle": "word:2", "threshold": 0.5, "recall": 1},
    "chars": {"shingle": "char:4", "threshold": 0.6},
    "words": {"shingle": "word:1", "threshold": 0.7, "stop_words": ["raina"]},
    "guards": {"shingle": "word:1", "threshold": 0.6, "guards": ["numbers", "negations"]},
    "exact guards": {"shingle": "word:1", "threshold": 0.6, "guards": "numbers", "recall": 1},
}
SETTINGS = {kind: {"recall": 0.95} | settings for kind, settings in SETTINGS.items()}


def texts_of(rng: random.Random) -> list[str]:
    """Return copies, variants, siblings, a template of many texts, and texts without words."""
    texts = ["", "...", "7"]
    for _ in range(40):
        base = rng.choices(WORDS, k=rng.choice([1, 3, 12, 40]))
        for _ in range(rng.choice([1, 2, 6])):
            words = [rng.choice(WORDS) if rng.random() < 0.07 else word for word in base]
            words += rng.choice([[], ["17"], ["18"], ["not", "now"]])
            texts += [" ".join(words)] * rng.choice([1, 1, 3])
    template = rng.choices(WORDS, k=15)
    texts += [" ".join([*template, f"n{number}", f"m{number % 7}"]) for number in range(400)]
    rng.shuffle(texts)
    return texts


@pytest.mark.parametrize("kind", sample(SETTINGS, 3, "more"))
def test_the_result_is_that_of_a_corpus(db: ts.Database, rng: random.Random, kind: str) -> None:
    settings = SETTINGS[kind]
    texts = texts_of(rng)
    corpus = db.create_corpus("c", **settings)
    corpus.add_many((f"{place:04d}", text) for place, text in enumerate(texts))
    expected = sorted((int(p.a), int(p.b), p.similarity) for p in corpus.pairs())
    pairs = ts.pairs(texts, **settings)
    assert sorted(map(tuple, pairs)) == expected
    assert [pair.similarity for pair in pairs] == sorted((s for *_, s in expected), reverse=True)
    for linkage in ("single", "complete", "kept"):
        clusters = ts.clusters(dict(enumerate(texts)), linkage, **settings)
        assert [tuple(c) for c in clusters] == [
            (tuple(map(int, c.keys)), c.weakest, None if c.kept is None else int(c.kept))
            for c in corpus.clusters(linkage=linkage)
        ]


def pairs_at_the_threshold(rng: random.Random) -> list[str]:
    """Return 500 pairs of texts, one after another, of similarity 0.8; no others are similar."""
    return [
        " ".join(f"{word}x{number}" for word in words)
        for number in range(500)
        for words in (rng.sample(range(9), 9), [*range(8), 9])
    ]


def test_by_default_all_pairs_are_found(rng: random.Random, textsim: Textsim) -> None:
    """Bands of recall 0.95 miss some of these pairs; each function and the command find all."""
    texts = pairs_at_the_threshold(rng)
    expected = [(first, first + 1) for first in range(0, 1000, 2)]
    settings: dict[str, Any] = {"shingle": "word:1", "threshold": 0.8}
    assert len(ts.pairs(texts, **settings, recall=0.95)) < 500
    assert [tuple(pair) for pair in ts.pairs(texts, **settings)] == [(*p, 0.8) for p in expected]
    for linkage in Linkage:
        assert [c.keys for c in ts.clusters(texts, linkage, **settings)] == expected
    table = pa.table({"text": texts})
    assert ts.dedupe_frame(table, "text", **settings)[1].kept == 500
    Path("texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    result = textsim("dedupe", "texts.jsonl", "-o", "kept.jsonl", "--shingle", "word:1")
    assert "1,000 documents: 500 kept, 500 removed from 500 clusters" in result.stderr


def test_bands_in_memory_are_taken_if_they_are_given(rng: random.Random) -> None:
    texts = pairs_at_the_threshold(rng)
    settings: dict[str, Any] = {"shingle": "word:1", "bands": 5, "rows": 12}
    assert 0 < len(ts.pairs(texts, **settings)) < 400


def judged(rng: random.Random, size: int, texts: list[str]) -> list[JudgedKeys]:
    """Return judgements of close and of other pairs; some lead through documents that do not exist."""
    order = sorted(range(size), key=texts.__getitem__)
    neighbours = list(pairwise(order))
    pairs = [rng.choice(neighbours) for _ in range(30)]
    pairs += [(rng.randrange(size), size + rng.randrange(3)) for _ in range(6)]
    different = {tuple(sorted(pair)) for pair in pairs}
    return [
        JudgedKeys(
            f"{a:04d}", f"{b:04d}", rng.choice(["same", "different", "unsure"]), f"line {line}"
        )
        for line, (a, b) in enumerate(sorted(different), start=1)
    ]


def test_what_is_removed_is_what_a_corpus_removes(
    db: ts.Database, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings, scopes, linkage, the rule of keeping and judgements are drawn at random."""
    kind, linkage = rng.choice(list(SETTINGS)), rng.choice(list(Linkage))
    keep, is_judged = rng.choice(["first", "last", "longest", "max:n"]), rng.random() < 0.5
    scopes = rng.choice([None, ["a", "b"]])
    fields = SETTINGS[kind] | {"scoped": scopes is not None}
    settings = ts.CorpusSettings(**fields)
    texts = texts_of(rng)
    documents = [
        Document(
            None if rng.random() < 0.02 else text + "\0" * (rng.random() < 0.02),
            rng.randrange(9),
            rng.choice(scopes) if scopes else None,
            f"{place:04d}",
        )
        for place, text in enumerate(texts)
    ]
    rule = Rule(Preference.parse(keep), with_lists(settings).complete(), linkage)
    judgements = judged(rng, len(texts), texts) if is_judged else []
    if scopes:
        # A corpus refuses judgements of documents of two scopes.
        judgements = [
            each
            for each in judgements
            if len({documents[i].scope for i in map(int, each[:2]) if i < len(texts)}) == 1
        ]
    result = deduplicate(documents, rule, judgements=judgements)

    corpus = db.create_corpus("c", **fields)
    stored: list[Any] = [
        (f"{place:04d}", document.text, *([document.scope] if scopes else []))
        for place, document in enumerate(documents)
        if document.text is not None
    ]
    report = corpus.add_many(stored)
    corpus._judge_many(each[:3] for each in judgements)
    lengths = np.array([0 if each.text is None else len(each.text) for each in documents])
    ranks = rule.preference.ranks(lengths, [each.value for each in documents])
    expected = corpus.duplicates(
        linkage=linkage, rank=lambda key: ranks[int(key)], judgements=is_judged
    )
    monkeypatch.setattr(loaded_documents, "COMPARED_AT_ONCE", 0)
    again = deduplicate(documents, rule, judgements=judgements)
    assert sorted(again.removals) == sorted(result.removals)
    said = (kind, linkage, keep, is_judged, scopes)
    assert sorted(result.removals) == sorted(
        (int(d.key), int(d.kept), d.similarity) for d in expected
    ), said
    assert result.removals
    assert [(f"{n:04d}", why) for n, why in result.refused] == [tuple(r) for r in report.refused]
    assert result.without_words == report.without_words
    assert result.summary is not None
    assert sum(result.summary.tenths) == len(result.removals)


def test_what_passes_the_memory_lies_in_files(
    rng: random.Random, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result is the same, and a file that cannot grow is an error."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    documents = [Document(text) for text in texts_of(rng)] * 20
    rule = Rule(Preference.parse("first"), ts.CorpusSettings().complete())
    expected = deduplicate(documents, rule)
    for memory in (0, 200_000):
        assert deduplicate(documents, rule, memory=memory) == expected
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            deduplicate(documents, rule, memory=0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []


def test_judgements_that_contradict_the_scopes_are_refused() -> None:
    documents = [Document("one two three", scope=scope, key=scope) for scope in "ab"]
    rule = Rule(Preference.parse("first"), ts.CorpusSettings(scoped=True).complete())
    for a, b, message in (("a", "b", "different scopes"), ("a", "a", "same record twice")):
        pair = JudgedKeys(a, b, "same", "line 7")
        with pytest.raises(ts.ConfigurationError, match=f"line 7: .*{message}"):
            deduplicate(documents, rule, judgements=[pair])


def test_keys_are_any_texts_in_their_order() -> None:
    texts = {"z\0": "one two three", "a": "one two three!", "": "One two, three"}
    assert [pair[:2] for pair in ts.pairs(texts)] == [("", "a"), ("", "z\0"), ("a", "z\0")]
    assert ts.clusters(texts, "kept") == [Cluster(("", "a", "z\0"), 1.0, "")]
    for none in ([], ["", ""], ["a"]):
        assert ts.pairs(none) == []
        assert ts.clusters(none) == []


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a", None], "text 1: the text is null"),
        ({"k": 3}, "text 'k': the text is of type int"),
        (iter(["a", "b\0"]), "text 1: the text has a NUL"),
    ],
)
def test_a_text_that_cannot_be_compared_is_named(texts: Any, message: str) -> None:
    with pytest.raises(ts.DocumentError, match=message):
        ts.pairs(texts)


def test_a_wrong_setting_is_named() -> None:
    with pytest.raises(ts.ConfigurationError, match="threshold"):
        ts.pairs(["a"], threshold=2)
    with pytest.raises(ts.ConfigurationError, match="linkage"):
        ts.clusters(["a"], "some")  # type: ignore[call-overload]


def test_no_database_is_opened() -> None:
    code = """
import sys, textsim_db
assert len(textsim_db.pairs(["one two three", "one two three!"])) == 1
assert "sqlalchemy" not in sys.modules, "SQLAlchemy was imported"
assert not any(name.startswith("postgresql") for name in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
