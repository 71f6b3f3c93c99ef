"""textsim plan: its tables, curves, measurements and errors."""

from __future__ import annotations

import builtins
import json
import random
from pathlib import Path
from typing import Any

import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.commands import Textsim, process
from tests.support.connections import Connection
from textsim_db.read import measure_recall


def test_without_a_corpus(textsim: Textsim) -> None:
    shown = textsim("plan", "--threshold", "0.8", "--recall", "0.95").stdout
    assert [line.split()[:2] for line in shown.splitlines() if "yes" in line] == [["18", "7"]]


def test_bands_that_find_little_are_said(textsim: Textsim, db: ts.Database) -> None:
    assert textsim("plan", "--recall", "0.75").stderr == ""
    for options in (("--recall", "0.3"), ("--recall", "0.3", "--format", "jsonl")):
        assert "rows find 33.3 % of the pairs at 0.8" in textsim("plan", *options).stderr
    corpus = ("--bands", "5", "--rows", "20")
    few = "5 bands of 20 rows find 5.6 % of the pairs at 0.8; fewer rows find more"
    assert few in textsim("corpus", "create", "few", *corpus).stderr
    assert few in textsim("plan", "few").stderr
    assert few in textsim("query", "few", "some words").stderr
    assert few in textsim("pairs", "few").stderr
    Path("in.jsonl").write_text('{"text": "some words"}')
    assert few in textsim("dedupe", "in.jsonl", "-o", "out.jsonl", *corpus).stderr
    for settings in ((), ("--recall", "1"), ("--recall", "0.8")):
        assert textsim("corpus", "create", f"c{len(settings)}{settings}", *settings).stderr == ""


@pytest.mark.more
def test_passages_are_counted(textsim: Textsim, db: ts.Database, connection: Connection) -> None:
    (row, *_) = textsim("plan", "--passages", "13", "--format", "jsonl").stdout.splitlines()
    assert json.loads(row)["fingerprints/document"] == 43
    assert "fingerprints" not in textsim("plan").stdout
    corpus = db.create_corpus("c", passages=13)
    corpus.add_many(documents(200, 100))
    lines = textsim("plan", "c", "--format", "jsonl").stdout.splitlines()
    planned = json.loads(lines[0])["fingerprints/document"]
    ((stored,),) = connection.execute("SELECT count(*) FROM textsim.passage_1")
    assert planned == pytest.approx(stored / 200, rel=0.1)
    told = textsim("plan", "--passages", "3", status=2).stderr
    assert "passages is 3; expected 4 to 1000" in told


def test_settings_are_refused_before_the_measurement(
    textsim: Textsim, monkeypatch: pytest.MonkeyPatch
) -> None:
    textsim("corpus", "create", "c")
    monkeypatch.setattr(measure_recall, "measure_recall", None)
    message = "no bands of 128 hashes reach recall 0.99 at threshold 0.1"
    arguments = ("--recall", "0.99", "--threshold", "0.1")
    assert message in textsim("plan", "c", *arguments, status=2).stderr


def test_a_corpus_without_pairs(textsim: Textsim) -> None:
    textsim("corpus", "create", "c")
    assert "the recall is unknown" in textsim("plan", "c").stdout
    textsim("index", "c", "-", "--kind", "jsonl", input='{"id": 1, "text": "..."}\n')
    assert "; 1 without words left out\n" in textsim("plan", "c").stdout


def test_a_longer_shingle_is_offered_for_a_spaceless_script(
    textsim: Textsim, db: ts.Database, rng: random.Random
) -> None:
    for letters, shingle, offered in (
        ("明天上午九点在图书馆", "word:3", "word:6"),
        ("明天上午九点在图书馆", "char:5", "word:6"),
        ("明天上午九点在图书馆", "word:6", None),
        ("กขคงจฉชซ", "word:3", "word:8"),
        ("abcdefgh ", "word:3", None),
    ):
        corpus = db.create_corpus(f"{letters} {shingle}", shingle=shingle)
        texts = ["".join(rng.choices(letters, k=1000)) for _ in range(5)]
        corpus.add_many({str(i): text for i, text in enumerate(texts)})
        assert corpus.measure_recall().shingle == offered, (letters, shingle)
        shown = textsim("plan", corpus.name).stdout
        assert (f"--shingle {offered}" in shown) == (offered is not None)
    titles = db.create_corpus("titles")
    titles.add("1", "明天上午九点在图书馆")
    assert titles.measure_recall().shingle is None


@pytest.mark.more
def test_plots_are_drawn_if_nobody_reads_the_output(textsim: Textsim, database_url: str) -> None:
    pytest.importorskip("matplotlib")
    textsim("index", "c", "-", "--create", "--kind", "jsonl", input='{"id": 1, "text": "a b c"}\n')
    with process("plan", "c", "--plot", "plan.png", url=database_url) as running:
        assert running.stdout
        assert running.stderr
        running.stdout.close()
        assert "drawn: plan.png" in running.stderr.read()
    assert Path("plan.png").stat().st_size > 10_000


def test_wrong_usage(textsim: Textsim, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments, message in [
        (["--plot", "a.gif"], "a.gif: plots are written as .svg or .png"),
        (["--threshold", "2"], "threshold is 2.0; expected above 0, at most 1"),
        (["--documents=-5"], "documents is -5; expected 0 or more"),
        (["--words", "inf"], "words is inf; expected 0 to"),
        (["nothing"], 'corpus "nothing" does not exist'),
        (["--sample", "many"], '"many" is not a whole number'),
    ]:
        assert message in textsim("plan", *arguments, status=2).stderr
    textsim("corpus", "create", "c")
    for arguments, message in [
        (["--recall", "0"], "recall is 0.0; expected above 0, at most 1"),
        (["--seed", "-1"], "seed is -1; expected 0 or more"),
    ]:
        assert message in textsim("plan", "c", *arguments, status=2).stderr
    original = builtins.__import__

    def without(name: str, *arguments: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return original(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without)
    message = textsim("plan", "--plot", "a.svg", status=2).stderr
    assert "plots need matplotlib, which is not installed: pip install -e '.[plot]'" in message


def test_an_exact_corpus_promises_nothing_below_its_threshold(textsim: Textsim) -> None:
    texts = {f"{i}": f"one two three four five six seven eight nine {i % 2}" for i in range(6)}
    lines = "".join(f'{{"id": "{key}", "text": "{text}"}}\n' for key, text in texts.items())
    Path("exact.jsonl").write_text(lines)
    textsim("index", "exact", "exact.jsonl", "--create", "--recall", "1", "--threshold", "0.9")
    assert "exact, no pair can be missed" in textsim("plan", "exact").stdout
    below = textsim("plan", "exact", "--threshold", "0.5").stdout
    assert "no pair can be missed" not in below
    assert "exact: every pair at 0.9 or more is found" in below


def test_edits_give_a_threshold(textsim: Textsim) -> None:
    shown = textsim("plan", "--edits", "1")
    (chosen,) = (line.split() for line in shown.stdout.splitlines() if "yes" in line)
    assert (chosen[0], chosen[2], chosen[5]) == ("char:4", "0.6190", "0.619")
    command = "--shingle char:4 --threshold 0.619 --recall 1 finds every text with 1 edit"
    assert command in shown.stderr
    options = "--edits 2 --characters 30 --format jsonl"
    rows = [json.loads(line) for line in textsim("plan", *options.split()).stdout.splitlines()]
    assert [row["shingle"] for row in rows if row["chosen"]] == ["char:3"]
    assert rows[0]["at 30"] == pytest.approx(22 / 34)
    for arguments, message in [
        (["--edits", "2", "--characters", "5"], "one of 2 edits; expected 9 characters or more"),
        (["--edits", "0"], "edits is 0; expected 1 to 100"),
        (["--edits", "1", "--threshold", "0.5"], "it takes no CORPUS, no settings and no --plot"),
        (["--edits", "1", "news"], "it takes no CORPUS, no settings and no --plot"),
        (["--characters", "30"], "only for --edits"),
    ]:
        assert message in textsim("plan", *arguments, status=2).stderr
