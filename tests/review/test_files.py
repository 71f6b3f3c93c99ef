"""Judgements as files, out of the pages and into them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import textsim_db as ts
from tests.review.conftest import Open
from textsim_db.review.judgement_file import JudgementFile

GIVEN = [("a", "b", "same", 'a, "note"\nof two lines'), ("a", "c", "different", None)]


def test_exported_judgements_are_imported_again(corpus: ts.Corpus, open_review: Open) -> None:
    corpus.judge_many(GIVEN)
    before = list(corpus.judgements())
    client = open_review(corpus)
    assert "2 judgements" in client.get("/judgements").text
    for path in ("/judgements.csv", "/judgements.jsonl"):
        exported = client.get(path)
        assert path[1:] in exported.headers["content-disposition"]
        for judgement in list(corpus.judgements()):
            corpus.unjudge(judgement.a, judgement.b)
        sent = client.post("/import", files={"file": (path[1:], exported.content)})
        assert sent.headers["location"] == "/judgements?imported=2"
        after = list(corpus.judgements())
        assert [(*j[:3], j.note) for j in after] == [(*j[:3], j.note) for j in before]
        assert "2 judgements new" in client.get(sent.headers["location"]).text
    changed = b"a,b,verdict\na,b,different\n"
    assert client.post("/import", files={"file": ("j.csv", changed)}).status_code == 409
    sent = client.post("/import", files={"file": ("j.csv", changed)}, data={"replace": "1"})
    assert sent.status_code == 303
    assert [j.verdict for j in corpus.judgements()] == ["different", "different"]


@pytest.mark.parametrize(
    ("name", "contents", "message"),
    [
        ("j.csv", b"a,b\n1,2\n", "there is no column"),
        ("j.csv", b"a,b,verdict\n1,2,perhaps\n", "j.csv, line 2"),
        ("j.jsonl", b"{", "j.jsonl, line 1"),
        ("j.exe", b"", "choose a file that ends in .csv"),
        ("../../<b>.csv", b"\x00\xff", "Not done"),
    ],
)
def test_a_faulty_file_is_refused_by_its_line(
    corpus: ts.Corpus, open_review: Open, name: str, contents: bytes, message: str
) -> None:
    client = open_review(corpus)
    refused = client.post("/import", files={"file": (name, contents)})
    assert refused.status_code == 400
    assert message in refused.text
    assert "/tmp" not in refused.text
    for data in ({}, {"file": "x"}):
        assert client.post("/import", data=data).status_code == 400
    assert list(corpus.judgements()) == []


def test_read_only_imports_nothing(corpus: ts.Corpus, open_review: Open) -> None:
    client = open_review(corpus, read_only=True)
    sent = client.post("/import", files={"file": ("j.csv", b"a,b,verdict\na,b,same\n")})
    assert sent.status_code == 403
    assert list(corpus.judgements()) == []


def test_a_file_of_judgements_refuses_what_a_corpus_refuses(tmp_path: Path) -> None:
    path = tmp_path / "judged.jsonl"
    one, other = JudgementFile(str(path)), JudgementFile(str(path))
    assert one.judge("b", "a", "same", "n")
    assert not other.judge("a", "b", "same", "n")
    with pytest.raises(ts.JudgementExists, match="has judged the pair same"):
        other.judge("a", "b", "different")
    assert other.judge("a", "b", "different", replaces="same")
    assert [(j.a, j.b, j.verdict) for j in one.read().values()] == [("a", "b", "different")]
    with pytest.raises(ts.JudgementExists, match="judgement 2"):
        one.judge_many([("x", "y", "same", None), ("a", "b", "same", None)])
    assert one.judge_many([("x", "y", "same", None), ("a", "b", "same", None)], replace=True) == 2
    assert one.unjudge("y", "x")
    assert not one.unjudge("y", "x")
    (line,) = path.read_text().splitlines()
    assert {"a", "b", "verdict", "judged_by", "judged_at", "note"} == json.loads(line).keys()
    path.write_text("[]")
    with pytest.raises(ts.InputError, match="line 1 is no judgement"):
        one.read()
