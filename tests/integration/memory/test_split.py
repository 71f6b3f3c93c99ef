"""split(): whole clusters into subsets with wished shares, compared with all pairs, in each engine."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import textsim_db as ts
from tests.support.commands import Textsim
from tests.support.records import KINDS, Rows, ids_of
from tests.support.truth import brute_force
from textsim_db.results import Split

SHARES = {"train": 0.8, "val": 0.1, "test": 0.1}


def draw_texts(rng: random.Random, count: int) -> list[str]:
    """Return texts of which some are copies, and some make chains of small changes."""
    words = [f"w{number}" for number in range(400)]
    texts: list[str] = []
    while len(texts) < count:
        text = rng.choices(words, k=rng.choice([3, 20, 30]))
        for _ in range(rng.choice([1, 1, 1, 2, 3, 12])):
            texts.append(" ".join(text))
            if rng.random() < 0.7:
                text = [*text]
                text[rng.randrange(len(text))] = rng.choice(words)
    rng.shuffle(texts)
    return texts[:count]


def subset_of(split: Split[Any]) -> dict[Any, str]:
    return {key: name for name, keys in split.subsets.items() for key in keys}


def test_no_similar_pair_is_cut_and_shares_are_held(
    db: ts.Database, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = db.create_corpus("split", recall=1.0, threshold=0.6)
    for seed in range(3):
        rng = random.Random(seed)
        texts = draw_texts(rng, 1_000)
        labels = rng.choices("abc", [6, 3, 1], k=len(texts))
        keys = [f"{number:04d}" for number in range(len(texts))]
        truth = brute_force(dict(zip(keys, texts, strict=True)), "word:3", 0.6)
        pairs = [(int(a), int(b)) for a, b in truth]
        for stratify in (None, labels.__getitem__):
            split = ts.split(texts, SHARES, seed, stratify, threshold=0.6)
            subset = subset_of(split)
            assert sorted(subset) == [*range(len(texts))]
            assert not [pair for pair in pairs if subset[pair[0]] != subset[pair[1]]]
            for name, share in SHARES.items():
                assert abs(len(split.subsets[name]) - share * len(texts)) <= 0.01 * len(texts), name
            if stratify is not None:
                for label, total in Counter(labels).items():
                    test = sum(labels[number] == label for number in split.subsets["test"])
                    assert abs(test / total - SHARES["test"]) <= 0.03, label
            corpus.add_many(zip(keys, texts, strict=True))
            by_key = None if stratify is None else dict(zip(keys, labels, strict=True)).get
            stored = corpus.split(SHARES, seed, by_key)
            assert stored.cut == split.cut
            assert {int(key): name for key, name in subset_of(stored).items()} == subset
        one_by_one = ts.split([f"{number} alone" for number in range(len(texts))], SHARES, seed)
        drawn = subset_of(one_by_one)
        assert ts.split(texts, SHARES, seed, threshold=0.6).cut == sum(
            drawn[a] != drawn[b] for a, b in pairs
        )
    assert ts.split(texts, SHARES, 7).subsets != ts.split(texts, SHARES, 8).subsets
    assert "instead of" not in caplog.text


def test_one_scope_is_split(db: ts.Database) -> None:
    texts = {f"{n:03d}": text for n, text in enumerate(draw_texts(random.Random(3), 120))}
    corpus = db.create_corpus("scoped", recall=1.0, threshold=0.6, scoped=True)
    corpus.add_many((key, text, "xy"[int(key) % 2]) for key, text in texts.items())
    of_scope = {key: text for key, text in texts.items() if int(key) % 2}
    split = ts.split(of_scope, SHARES, 1, threshold=0.6)
    assert subset_of(corpus.split(SHARES, 1, scope="y")) == subset_of(split)


def test_shares_that_cannot_be_held(db: ts.Database, caplog: pytest.LogCaptureFixture) -> None:
    copies = ["one two three four"] * 9
    for shares, message in (
        ({"a": 0.5, "b": 0.4}, "the shares sum to 0.9; expected 1"),
        ({"a": 1.0}, "expected the shares of two subsets or more"),
        ({"a": 0.5, "b": True}, "subset 'b' has the share True"),
        (
            {"a": 0.5, "b": 0.5},
            "would have none of 9 documents; the largest cluster, which stays whole",
        ),
    ):
        with pytest.raises(ts.ConfigurationError, match=message):
            ts.split(copies, shares)
    ts.split([*copies, "five"], {"a": 0.5, "b": 0.5})
    assert "of 10 documents: the largest cluster, which stays whole, has 9" in caplog.text
    corpus = db.create_corpus("banded", threshold=0.8)
    for threshold in (None, 0.6):
        with pytest.raises(ts.ConfigurationError, match=r"does not find all pairs.*--recall 1"):
            corpus.split({"a": 0.5, "b": 0.5}, threshold=threshold)


def rows_with_labels() -> Rows:
    texts = draw_texts(random.Random(5), 400)
    return [
        {"id": str(number), "text": text, "label": "ab"[number % 2]}
        for number, text in enumerate(texts)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_files(textsim: Textsim, kind: str) -> None:
    rows = rows_with_labels()
    Path(f"in.{kind}").write_bytes(KINDS[kind](rows))
    arguments = ("--split", "train=0.75,test=0.25", "--stratify", "label", "--threshold", "0.6")
    told = textsim("dedupe", f"in.{kind}", *arguments, "-o", "out").stderr
    texts = [str(row["text"]) for row in rows]
    split = ts.split(
        texts, {"train": 0.75, "test": 0.25}, 0, lambda n: repr("ab"[n % 2]), threshold=0.6
    )
    assert f"400 records: {len(split.subsets['train'])} in train (" in told
    assert f"no similar pair is cut; a split of single records would cut {split.cut}" in told
    other = "parquet" if kind == "csv" else "csv"
    textsim("dedupe", f"in.{kind}", *arguments, "-o", "other", "--output-kind", other)
    for name, numbers in split.subsets.items():
        for path in (f"out/{name}.{kind.removesuffix('.gz')}", f"other/{name}.{other}"):
            assert ids_of(path) == [*map(str, numbers)], path


def test_a_class_that_has_no_hash_is_refused() -> None:
    with pytest.raises(
        ts.ConfigurationError, match=r"stratify returns \['a'\] for the key 0; expected"
    ):
        ts.split(["one", "two"], SHARES, stratify=lambda key: ["a"])  # type: ignore[arg-type,return-value]


def test_wrong_options(textsim: Textsim) -> None:
    Path("in.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n{"text": 3}\n')
    for arguments, message in (
        (["--split", "a=0.5,b=0.5"], "--split: it needs --output with the name of a folder"),
        (["--split", "a=0.5,b=0.6", "-o", "x"], "the shares sum to 1.1; expected 1"),
        (["--split", "a=0.5,../b=0.5", "-o", "x"], '"../b" names no other file'),
        (["--split", "a=0.5,a=0.5", "-o", "x"], '"a" names no other file'),
        (["--split", "a,b", "-o", "x"], '"a" is no NAME=SHARE such as test=0.2'),
        (["--split", "a=0.5,b=0.5", "-o", "x", "--random-seed", "-1"], "random_seed is -1"),
        (
            ["--split", "a=0.5,b=0.5", "-o", "x", "--annotate", "--keep", "last"],
            "--split: it removes nothing; leave out --annotate, --keep",
        ),
        (["--split", "in=0.5,b=0.5", "-o", "."], "in.jsonl is also INPUT"),
        (["--split", "a=0.5,b=0.5", "-o", "x", "--stratify", "lable"], "--stratify"),
        (["--stratify", "label"], "--stratify: it needs --split"),
    ):
        assert message in textsim("dedupe", "in.jsonl", *arguments, status=2).stderr
    told = textsim("dedupe", "in.jsonl", "--split", "a=0.5,b=0.5", "-o", "x", status=1).stderr
    assert 'left out, because it cannot be compared: line 3: "text" is a number' in told
    assert Path("x/a.jsonl").read_text() + Path("x/b.jsonl").read_text() in (
        '{"text": "one"}\n{"text": "two"}\n',
        '{"text": "two"}\n{"text": "one"}\n',
    )
