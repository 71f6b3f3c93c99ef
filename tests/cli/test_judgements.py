"""Judgements, in a shell."""

from __future__ import annotations

import csv
import json
from itertools import combinations
from pathlib import Path

import pytest

import textsim_db as ts
from tests.support.commands import NEWS, Textsim

HOSTILE = [
    *("a,b", 'a "b"', "a\nb", "a\rb", "a\r\nb", "=1+1", "", " a ", "\ufeff", "'", "\\N", "null"),
    *("\u202eshalom", "שלום", "🙂", "e\u0301", "\t", "--note", "None", "1e5", "k" * 1000),
]


@pytest.fixture
def corpus(textsim: Textsim, db: ts.Database) -> ts.Corpus:
    textsim("corpus", "create", "news", "--threshold", "0.8")
    corpus = db.corpus("news")
    corpus.add_many(NEWS)
    return corpus


def test_wrong_usage(textsim: Textsim, corpus: ts.Corpus) -> None:
    corpus.judge("a", "b", "different")
    assert "was judged different by" in textsim("judge", "news", "a", "b", "same", status=2).stderr
    assert "is not judged" in textsim("judgements", "remove", "news", "b", "c", status=2).stderr
    assert 'did you mean "same"?' in textsim("judge", "news", "a", "b", "sane", status=2).stderr


def test_doubtful_pairs_are_a_table(textsim: Textsim, db: ts.Database) -> None:
    notes = db.create_corpus("notes", shingle="word:1", is_unique=True, unique_from=0.99)
    notes.add_many({"x": "a b c d e f g h", "y": "a b c d e f g h i"})
    assert "1 pair found" in textsim("doubtful", "notes").stderr


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_an_export_is_imported_whatever_the_keys_are(
    textsim: Textsim, db: ts.Database, corpus: ts.Corpus, tmp_path: Path, form: str
) -> None:
    given = [
        (key, HOSTILE[i - 1], verdict, note)
        for i, (key, verdict, note) in enumerate(
            zip(HOSTILE, ["same", "different", "unsure"] * 7, [*HOSTILE[1:], None], strict=True)
        )
    ]
    corpus._judge_many(given)
    exported = textsim("judgements", "list", "news", "--format", form).stdout_bytes
    path = tmp_path / f"judgements.{form}"
    path.write_bytes(exported)
    db.create_corpus("other")
    result = textsim("judgements", "import", "other", str(path))
    assert f"{len(given)} judgements read, {len(given)} new" in result.stderr
    read = [(j.a, j.b, j.verdict, j.note) for j in db.corpus("other").judgements()]
    assert read == [(j.a, j.b, j.verdict, j.note) for j in corpus.judgements()]
    assert len(read) == len(HOSTILE)
    again = textsim("judgements", "import", "other", str(path))
    assert f"{len(given)} judgements read, 0 new" in again.stderr


FAULTY: list[tuple[str, str]] = [
    ("a,b\nx,y\n", 'there is no column "verdict"'),
    ("a,b,verdikt\n", 'found "a", "b", "verdikt": rename the column'),
    ("a,b,verdict,a\n", '2 columns are named "a"; found '),
    ("a,b,verdict\nx,y,same\nx,z,equal\n", ", line 3: \"verdict\" is 'equal'; expected one of"),
    ("a,b,verdict\nx,y,same\nx,same\n", ", line 3: the record has 2 columns"),
    ("a,b,verdict\nx,y,same\ny,x,same\n", ", line 3: this pair is judged already: "),
    ("a,b,verdict\nx,y,same\nx,x,same\n", ", line 3: the pair ('x', 'x') names no two"),
    (f"a,b,verdict\nx,y,same\n{'x' * 1001},y,same\n", ", line 3: the key is 1001 bytes long"),
    ("a,b,verdict\nx,y,same\na,b,same\n", ", line 3: the pair ('a', 'b') was judged different"),
    ("", "the file is empty"),
]


def test_a_faulty_line_stops_imports(textsim: Textsim, corpus: ts.Corpus, tmp_path: Path) -> None:
    corpus.judge("a", "b", "different")
    path = tmp_path / "judgements.csv"
    for lines, message in FAULTY:
        path.write_text(lines)
        error = textsim("judgements", "import", "news", str(path), status=2).stderr
        assert "judgements.csv" in error
        assert message in error
        assert [judgement.verdict for judgement in corpus.judgements()] == ["different"]


def test_imports_replace_if_told_to(textsim: Textsim, corpus: ts.Corpus, tmp_path: Path) -> None:
    corpus._judge_many([("a", "b", "different"), ("a", "c", "unsure", "keep"), ("a", "d", "same")])
    path = tmp_path / "judgements.jsonl"
    lines = ('{"b": "a", "a": "b", "verdict": "same"}', '{"a": "a", "b": "c", "verdict": "unsure"}')
    path.write_text("\n".join(lines))
    textsim("judgements", "import", "news", str(path), status=2)
    result = textsim("judgements", "import", "news", str(path), "--replace")
    assert "2 judgements read, 1 new or replaced" in result.stderr
    assert [(*j[:3], j.note) for j in corpus.judgements()] == [
        ("a", "b", "same", None),
        ("a", "c", "unsure", "keep"),
        ("a", "d", "same", None),
    ]


def test_dedupe_obeys_the_judgements_of_a_file(textsim: Textsim, tmp_path: Path) -> None:
    records, output = tmp_path / "records.jsonl", tmp_path / "unique.jsonl"
    records.write_text("".join(json.dumps({"id": k, "text": t}) + "\n" for k, t in NEWS.items()))
    judgements = tmp_path / "judgements.csv"

    def kept(*judged: tuple[str, str, str]) -> list[str]:
        with judgements.open("w", newline="") as file:
            csv.writer(file).writerows([("a", "b", "verdict"), *judged])
        arguments = ("--judgements", str(judgements), "-o", str(output))
        textsim("dedupe", str(records), *arguments)
        return [json.loads(line)["id"] for line in output.read_text().splitlines()]

    assert kept() == ["a", "d"]
    assert kept(("a", "b", "different")) == ["a", "b", "d"]
    # The chain leads through a key without a record.
    assert kept(("a", "gone", "same"), ("gone", "d", "same")) == ["a"]
    assert kept(("c", "d", "same"), ("a", "d", "different")) == ["a", "c"]


def test_dedupe_refuses_judgements_that_it_cannot_follow(textsim: Textsim, tmp_path: Path) -> None:
    records, judgements = tmp_path / "records.jsonl", tmp_path / "judgements.csv"
    records.write_text('{"id": 1, "text": "a"}\n{"id": 1, "text": "b"}\n{"id": 2, "text": "c"}\n')
    judgements.write_text("a,b,verdict\n2,1,same\n")
    command = ("dedupe", str(records), "--judgements", str(judgements))
    refused = textsim(*command, "-o", str(tmp_path / "o.jsonl"), status=2)
    message = 'a judgement names "1", but two records have this key: record 1, and record 2'
    assert message in refused.stderr


def test_check_counts_stale_judgements(textsim: Textsim, db: ts.Database, tmp_path: Path) -> None:
    news = db.create_corpus("news")
    news.add_many({"a": "a garden hose", "b": "a drill", "c": "a lamp"})
    textsim("judge", "news", "a", "b", "same")
    textsim("judge", "news", "b", "c", "same", "--any-text")
    assert "not obeyed" not in textsim("check", "news").stderr
    news.add("b", "a hammer")
    assert "1 judgement not obeyed, because a text has changed" in textsim("check", "news").stderr
    for form in ("csv", "jsonl"):
        exported = textsim("judgements", "list", "news", "--format", form).stdout
        path = tmp_path / f"judgements.{form}"
        path.write_text(exported)
        for pair in (("a", "b"), ("b", "c")):
            textsim("judgements", "remove", "news", *pair)
        textsim("judgements", "import", "news", str(path))
        assert [each.is_stale for each in news.judgements()] == [True, False], form
    assert "recorded" in textsim("judge", "news", "a", "b", "same").stderr
    assert not any(each.is_stale for each in news.judgements())
    path.write_text("a,b,verdict,hash_a\na,c,same,x\n")
    renamed = path.rename(tmp_path / "x.csv")
    told = textsim("judgements", "import", "news", str(renamed), status=2).stderr
    assert "expected hashes" in told


def test_judgements_of_a_cluster_of_a_report(textsim: Textsim) -> None:
    texts = ["one two three four five six", "one two three four five seven", "eight nine"]
    records = [{"id": str(n), "text": text} for n, text in enumerate([*texts[:2] * 2, texts[2]])]
    Path("in.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    options = ["--threshold", "0.5", "--linkage", "single", "--keep-up-to", "2"]
    textsim("dedupe", "in.jsonl", *options, "-o", "out.jsonl", "--report", "report.jsonl")
    textsim("index", "c", "in.jsonl", "--create", "--threshold", "0.5")
    Path("clusters.jsonl").write_text(textsim("clusters", "c", "--format", "jsonl").stdout)
    pairs = {frozenset((a, b)) for a, b in combinations("0123", 2)}
    for report in ("report.jsonl", "clusters.jsonl"):
        judged = textsim("judgements", "cluster", report, "2", "different").stdout
        lines = [json.loads(line) for line in judged.splitlines()]
        assert len(lines) == len(pairs)
        assert {frozenset((line["a"], line["b"])) for line in lines} == pairs
        Path("judgements.jsonl").write_text(judged)
        words = ["--judgements", "judgements.jsonl"]
        textsim("dedupe", "in.jsonl", *options[:2], *words, "-o", "out.jsonl")
        assert len(Path("out.jsonl").read_text().splitlines()) == 5
    textsim("judgements", "import", "c", "judgements.jsonl")
    assert not textsim("clusters", "c", "--judgements", "--format", "jsonl").stdout
    Path("no-key.jsonl").write_text('{"kept": {"key": "1"}, "removed": [{"key": null}]}')
    for arguments, message in (
        (("report.jsonl", "4", "same"), 'has a record "4"'),
        (("in.jsonl", "1", "same"), "no cluster of keys"),
        (("none.jsonl", "1", "same"), "No such file"),
        (("no-key.jsonl", "1", "same"), "has no key"),
        (("report.jsonl", "1", "equal"), "not one of same, different, unsure"),
    ):
        failed = textsim("judgements", "cluster", *arguments, status=2)
        assert message in failed.stderr
