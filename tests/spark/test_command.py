"""python -m textsim_db.spark dedupe: the same rows as textsim dedupe, and a report."""

from __future__ import annotations

import csv
import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.commands import Textsim
from tests.support.spark import Documents, near_duplicates
from textsim_db.spark.command import app

pytestmark = pytest.mark.more


def _run(source: str, output: str, *arguments: str, status: int = 0) -> str:
    """Run the command; Spark's process has another working folder, so paths are absolute."""
    paths = [str(Path(path).resolve()) for path in (source, output)]
    result = CliRunner().invoke(app, ["dedupe", *paths, *arguments], catch_exceptions=False)
    assert result.exit_code == status, result.output
    return result.output


def _read(folder: str) -> list[Any]:
    texts = [path.read_text("utf-8") for path in Path(folder).glob("*.json")]
    return [json.loads(line) for text in texts for line in text.splitlines()]


@pytest.fixture
def documents(rng: random.Random) -> Documents:
    return sorted(near_duplicates(rng, 300))


def test_it_keeps_the_rows_that_textsim_dedupe_keeps(
    spark: Any, textsim: Textsim, documents: Documents
) -> None:
    with Path("in.jsonl").open("w", encoding="utf-8") as file:
        for number, (key, text) in enumerate(documents):
            row = {"id": key, "text": text, "score": str(number % 10)}
            file.write(json.dumps(row) + "\n")
        file.write(json.dumps({"id": "none", "text": None, "score": ""}) + "\n")
    options = ["--threshold", "0.7", "--keep", "max:score"]
    textsim("dedupe", "in.jsonl", "-o", "out.jsonl", *options, status=1)
    output = _run(
        "in.jsonl", "out.json", "--report", str(Path("report").resolve()), *options, status=1
    )
    expected = [json.loads(line) for line in Path("out.jsonl").read_text("utf-8").splitlines()]
    assert sorted(row["id"] for row in _read("out.json")) == sorted(row["id"] for row in expected)
    assert "cannot be compared: the row with key none: the text is null" in output
    (counts,) = _read("report/counts")
    assert counts["documents"] == len(documents)
    assert counts["refused"] == 1
    assert counts["documents"] + 1 - counts["removed"] == len(expected)
    clusters = _read("report/clusters")
    assert len(clusters) == counts["clusters"] > 10
    assert sum(len(cluster["removed"]) for cluster in clusters) == counts["removed"]
    assert _read("report/refused") == [{"key": "none", "reason": "the text is null"}]


@pytest.mark.parametrize(
    ("source", "output", "delimiter", "read"),
    [("in.csv", "out", ",", open), ("in.tsv", "out.tsv.gz", "\t", gzip.open)],
)
def test_tables_with_line_breaks_and_quotes(
    spark: Any, textsim: Textsim, source: str, output: str, delimiter: str, read: Any
) -> None:
    rows = [["id", "text"], ["1", 'a "b"\n\tc'], ["2", 'A "B" c'], ["3", "other, words"]]
    with Path(source).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    _run(source, output, *(["--format", "csv"] if output == "out" else []))
    (part,) = (path for path in Path(output).iterdir() if path.name.startswith("part-"))
    with read(part, "rt", encoding="utf-8", newline="") as file:
        assert sorted(csv.reader(file, delimiter=delimiter)) == sorted([rows[0], rows[1], rows[3]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["in.csv", "out.csv", "--keep", "first"], "the rows of Spark have no first and last"),
        (["in.csv", "out.csv", "--keep", "max:scores"], 'there is no column "scores"'),
        (
            ["in.csv", "out.csv", "--keep", "max:mixed"],
            "the column mixes numbers and texts: 1 of 2",
        ),
        (["in.csv", "there.csv"], "there.csv exists; remove it, or name another place"),
        (["in.txt", "out.csv"], "in.txt names no format; give --format"),
        (["absent.csv", "out.csv"], "Spark: "),
    ],
)
def test_errors(spark: Any, textsim: Textsim, arguments: list[str], message: str) -> None:
    Path("in.csv").write_text("id,text,mixed\n1,a,1\n2,b,x\n", encoding="utf-8")
    Path("there.csv").mkdir()
    assert message in _run(*arguments, status=2)
