"""Scopes of several columns, and scopes that differ in nothing that a reader sees."""

from __future__ import annotations

import json
from pathlib import Path

import pandas
import polars
import pyarrow
import pytest

import textsim_db as ts
from tests.support.commands import Textsim
from tests.support.records import KINDS, Rows, ids_of

TEXT = "Experienced welder wanted for our new workshop, full time, from the first of May"
PLACES = [
    ("Aqua Ltd", "Leeds"),
    ("Aqua Ltd", "Cork"),
    ("Hydro plc", "Leeds"),
    ("Aqua Ltd", "leeds "),
    ("Aqua Ltd", "Leeds"),
    ("Aqua Ltd/Leeds", ""),
]
RECORDS: Rows = [
    {"id": str(i), "text": TEXT, "company": of, "city": city} for i, (of, city) in enumerate(PLACES)
]
SCOPES = ("--scope", "company", "--scope", "city")
NOTE = (
    '2 scopes differ from others only in case, spaces or encoding, such as "Aqua Ltd/Leeds" and '
    '"Aqua Ltd/leeds "; their documents are not compared with each other'
)


@pytest.mark.parametrize("kind", KINDS)
def test_records_are_compared_if_all_columns_are_equal(textsim: Textsim, kind: str) -> None:
    Path(f"in.{kind}").write_bytes(KINDS[kind](RECORDS))
    told = textsim("dedupe", f"in.{kind}", *SCOPES, "-o", f"out.{kind}").stderr
    assert ids_of(f"out.{kind}") == ["0", "1", "2", "3", "5"]
    assert NOTE in told
    told = textsim("dedupe", f"in.{kind}", "--scope", "company", "-o", f"out.{kind}").stderr
    assert ids_of(f"out.{kind}") == ["0", "2", "5"]
    assert "scopes differ" not in told


def test_a_corpus_has_the_same_scopes(textsim: Textsim, db: ts.Database) -> None:
    Path("in.jsonl").write_bytes(KINDS["jsonl"](RECORDS[:5]))
    told = textsim("index", "jobs", "in.jsonl", *SCOPES, "--create").stderr
    assert "5 added" in told
    corpus = db.corpus("jobs")
    assert {scope for scope, *_ in corpus.scopes()} == {"/".join(p) for p in PLACES[:5]}
    Path("new.jsonl").write_bytes(KINDS["jsonl"](RECORDS))
    textsim("dedupe", "new.jsonl", *SCOPES, "--against", "jobs", "--key", "id", "-o", "out.jsonl")
    assert ids_of("out.jsonl") == ["5"]
    records = [{**record, "id": f"r{record['id']}"} for record in RECORDS[:5]]
    for documents in (records, polars.DataFrame(records)):
        corpus.add_many(documents, key="id", text="text", scope=["company", "city"])
    assert {pair[:2] for pair in corpus.pairs(scope="Aqua Ltd/Cork")} == {("1", "r1")}


@pytest.mark.parametrize("make", [pandas.DataFrame, polars.DataFrame, pyarrow.Table.from_pylist])
def test_frames(make: object) -> None:
    frame = make(RECORDS)  # type: ignore[operator]
    unique, report = ts.dedupe_frame(frame, "text", "id", scope=["company", "city"])
    assert [row.key for row in report.removed] == ["4"]
    assert len(unique) == 5
    assert report.similar_scopes == [("Aqua Ltd/Leeds", "Aqua Ltd/leeds ")]
    missing = [{**RECORDS[0], "city": None}, *RECORDS]
    _, report = ts.dedupe_frame(polars.DataFrame(missing), "text", scope=["company", "city"])
    assert report.refused == [("0", 'column "city", row 0: the scope is null')]
    with pytest.raises(ts.ConfigurationError, match="scope='town' names no column"):
        ts.dedupe_frame(frame, "text", scope=["company", "town"])


def test_what_makes_two_scopes_look_alike(textsim: Textsim) -> None:
    names = ["Köln", "Ko\u0308ln", "KÖLN", "\u00a0köln", "Bonn"]
    lines = [json.dumps({"id": i, "text": TEXT, "city": name}) for i, name in enumerate(names)]
    Path("in.jsonl").write_text("\n".join(lines))
    told = textsim("dedupe", "in.jsonl", "--scope", "city", "-o", "out.jsonl").stderr
    assert "4 scopes differ from others only in case, spaces or encoding" in told


def test_a_tip_does_not_advise_what_is_given(textsim: Textsim) -> None:
    records = [{**record, "text": f"{TEXT} {i % 2}"} for i, record in enumerate(RECORDS)]
    Path("in.jsonl").write_bytes(KINDS["jsonl"](records))
    told = textsim("dedupe", "in.jsonl", "-o", "out.jsonl").stderr
    assert "apart: --guard numbers or --scope COLUMN;" in told
    told = textsim("dedupe", "in.jsonl", "-o", "out.jsonl", *SCOPES[:2]).stderr
    assert "apart: --guard numbers or one more --scope COLUMN;" in told
    told = textsim("dedupe", "in.jsonl", "--report", "r.html", *SCOPES[:2]).stderr
    assert "--report" not in told
