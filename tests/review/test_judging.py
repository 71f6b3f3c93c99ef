"""Judgements from the pages, and as files out of them and into them."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import textsim_db as ts
from tests.review.conftest import Open
from tests.support.review import seen_of
from tests.support.roles import Stage, new_stage
from tests.support.servers import Server
from textsim_db.errors import InputError
from textsim_db.files.judgement_files import read_judgements
from textsim_db.results import Judgement
from textsim_db.review.report_documents import JudgementFile


@pytest.fixture
def chairs(corpus: ts.Corpus) -> ts.Corpus:
    base = "solid oak chair with a woven seat that ships within three working days after the order"
    corpus.add_many({"a": base, "b": f"{base} today", "c": f"{base} tomorrow"})
    return corpus


def test_a_verdict_is_recorded_and_undone(chairs: ts.Corpus, open_review: Open) -> None:
    client = open_review(chairs)
    after = _judge(client, "a", "b", "same", note="line\r\nbreak")
    assert after.status_code == 303
    assert "b=b" not in after.headers["location"]
    assert [tuple(j)[:3] for j in chairs.judgements()] == [("a", "b", "same")]
    assert next(chairs.judgements()).note == "line\nbreak"
    _judge(client, "b", "a", "different", note="other")
    assert [j.verdict for j in chairs.judgements()] == ["different"]
    assert client.post("/undo").status_code == 303
    assert [(j.verdict, j.note) for j in chairs.judgements()] == [("same", "line\nbreak")]
    client.post("/undo")
    assert list(chairs.judgements()) == []
    assert client.post("/undo").headers["location"] == "pairs"


def test_a_stale_judgement_is_shown_and_waits_again(chairs: ts.Corpus, open_review: Open) -> None:
    chairs.judge("a", "b", "same")
    chairs.judge("b", "c", "different")
    chairs.add("b", f"{chairs.normal_form('b')} at night")
    client = open_review(chairs)
    assert client.get("/judgements").text.count("stale: a text has changed since") == 2
    assert "stale: a text has changed since" in client.get("/pair?a=a&b=b").text
    assert _open_pairs(client) == 3
    _judge(client, "a", "b", "different")
    assert [j.is_stale for j in chairs.judgements()] == [False, True]
    assert _open_pairs(client) == 2
    # An undone judgement is as stale as it was.
    client.post("/undo")
    after = [(j.verdict, j.is_stale) for j in chairs.judgements()]
    assert after == [("same", True), ("different", True)]


def test_two_people_overwrite_no_judgement_unseen(chairs: ts.Corpus, open_review: Open) -> None:
    one, other = open_review(chairs), open_review(chairs)
    seen = _seen(one, "a", "b")
    _judge(other, "a", "b", "different")
    refused = _judge(one, "a", "b", "same", seen=seen)
    assert refused.status_code == 409
    assert "judged it different" in refused.text
    assert [j.verdict for j in chairs.judgements()] == ["different"]
    # The page shows the verdict of the other, so now it may be replaced.
    assert _judge(one, "a", "b", "same").status_code == 303
    # Nobody undoes a judgement that somebody has replaced since.
    assert other.post("/undo").status_code == 409
    assert [j.verdict for j in chairs.judgements()] == ["same"]


def test_another_note_counts_as_another_judgement(chairs: ts.Corpus, open_review: Open) -> None:
    client = open_review(chairs)
    chairs.judge("a", "b", "same", note="one")
    seen = _seen(client, "a", "b")
    chairs.judge("a", "b", "same", note="two", replaces="same")
    assert _judge(client, "a", "b", "same", note="three", seen=seen).status_code == 409
    assert next(chairs.judgements()).note == "two"


def test_a_wrong_verdict_is_refused(chairs: ts.Corpus, open_review: Open) -> None:
    client = open_review(chairs)
    for verdict in ("", "sane", "\x00", "same'--"):
        assert _judge(client, "a", "b", verdict).status_code == 400
    assert _judge(client, "a", "b", "same", note="n" * 11_000).status_code == 400
    assert list(chairs.judgements()) == []


@pytest.fixture(scope="module")
def stage(server: Server) -> object:
    with new_stage(server) as stage:
        yield stage


def test_a_role_without_rights_reads_that_it_cannot_judge(stage: Stage, open_review: Open) -> None:
    with stage.connect(stage.reader) as db:
        client = open_review(db.corpus("news"))
        assert client.get("/pairs").status_code == 200
        refused = _judge(client, "a", "b", "same")
        assert refused.status_code == 403
        assert "permission denied" in refused.text
        assert list(db.corpus("news").judgements()) == []
    with stage.connect(stage.writer) as db:
        assert _judge(open_review(db.corpus("news")), "a", "b", "same").status_code == 303
        assert [j.judged_by for j in db.corpus("news").judgements()] == [stage.writer]


def _seen(client: TestClient, a: str, b: str) -> str:
    return seen_of(client.get("/pair", params={"a": a, "b": b}).text)


def _judge(
    client: TestClient, a: str, b: str, verdict: str, note: str = "", seen: Any = None
) -> Any:
    if seen is None:
        seen = _seen(client, a, b)
    form = {"verdict": verdict, "note": note, "seen": seen}
    return client.post("/judge", params={"a": a, "b": b}, data=form)


GIVEN = [("a", "b", "same", 'a, "note"\nof two lines'), ("a", "c", "different", None)]


def test_exported_judgements_are_imported_again(corpus: ts.Corpus, open_review: Open) -> None:
    corpus._judge_many(GIVEN)
    before = list(corpus.judgements())
    client = open_review(corpus)
    assert "2 judgements" in client.get("/judgements").text
    for path in ("/judgements.csv", "/judgements.jsonl"):
        exported = client.get(path)
        assert path[1:] in exported.headers["content-disposition"]
        for judgement in list(corpus.judgements()):
            corpus.unjudge(judgement.a, judgement.b)
        sent = client.post("/import", files={"file": (path[1:], exported.content)})
        assert sent.headers["location"] == "judgements?imported=2"
        after = list(corpus.judgements())
        assert [(*j[:3], j.note) for j in after] == [(*j[:3], j.note) for j in before]
        assert "2 judgements new" in client.get(sent.headers["location"]).text
    changed = b"a,b,verdict\na,b,different\n"
    assert client.post("/import", files={"file": ("j.csv", changed)}).status_code == 409
    sent = client.post("/import", files={"file": ("j.csv", changed)}, data={"replace": "1"})
    assert sent.status_code == 303
    assert [j.verdict for j in corpus.judgements()] == ["different", "different"]


def test_no_exported_cell_is_formula(corpus: ts.Corpus, open_review: Open, tmp_path: Path) -> None:
    starts = ["=", "+", "-", "@", "\t", "\r", "＝", "'=", "'", "''-", ""]
    cells = [f"{start}{text}" for start in starts for text in ("1", "HYPERLINK(0);=1")]
    given = [(a, "'", "same", f"{a} note") for a in cells if a != "'"]
    corpus._judge_many(given)
    exported = open_review(corpus).get("/judgements.csv").content
    (tmp_path / "judgements.csv").write_bytes(exported)
    rows = list(csv.reader(io.StringIO(exported.decode(), newline="")))
    assert not [cell for row in rows for cell in row if re.match("[=+@\t\r＝-]", cell)]
    # A spreadsheet that separates by semicolons sees no further cell.
    assert exported.count(b'"') == 2 * sum(map(len, rows))
    read = read_judgements(str(tmp_path / "judgements.csv"))
    notes = {(frozenset(each[:2]), each[3]) for each in given}
    assert {(frozenset(each[:2]), each.note) for each in read} == notes


FILE = b"a,b,verdict\na,b,same\n"


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


def test_a_file_of_judgements_refuses_what_a_corpus_refuses(tmp_path: Path) -> None:
    path = tmp_path / "judged.jsonl"
    one, other = JudgementFile(str(path)), JudgementFile(str(path))
    assert one.judge("b", "a", "same", "n")
    assert not other.judge("a", "b", "same", "n")
    with pytest.raises(ts.JudgementExists, match="has judged the pair same"):
        other.judge("a", "b", "different")
    assert other.judge("a", "b", "different", replaces="same")
    assert [(j.a, j.b, j.verdict) for j in one.read().values()] == [("a", "b", "different")]
    rest = (None, None, None)
    with pytest.raises(ts.JudgementExists, match="judgement 2"):
        one._judge_many([("x", "y", "same", *rest), ("a", "b", "same", *rest)])
    assert (
        one._judge_many([("x", "y", "same", *rest), ("a", "b", "same", *rest)], replace=True) == 2
    )
    assert one.unjudge("y", "x")
    assert not one.unjudge("y", "x")
    (line,) = path.read_text().splitlines()
    assert json.loads(line).keys() == set(Judgement._fields)
    path.write_text("[]")
    with pytest.raises(InputError, match="line 1 is no judgement"):
        one.read()


def _open_pairs(client: TestClient) -> int:
    table = client.get("/pairs?state=open").text.partition("<tbody>")[2]
    return table.count("<tr")
