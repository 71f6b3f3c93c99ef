"""textsim dedupe --against: the records of a file that a corpus does not have yet."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.commands import NEWS, Textsim, rows
from tests.support.connections import Connection
from tests.support.sampling import sample
from tests.support.waiting import wait_for
from textsim_db.cli import dedupe_run
from textsim_db.cli.document_commands import add_documents
from textsim_db.corpus.database import URL_VARIABLE


def write(name: str, records: list[dict[str, Any]]) -> None:
    Path(name).write_text("".join(json.dumps(record) + "\n" for record in records))


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


def texts(rng: random.Random, count: int) -> list[str]:
    """Return texts of few families, many of which match."""
    families = [[f"f{i}w{j}" for j in range(12)] for i in range(count // 4)]
    made = []
    for _ in range(count):
        words = list(rng.choice(families))
        for _ in range(rng.randrange(3)):
            words[rng.randrange(12)] = f"x{rng.randrange(3)}"
        made.append(" ".join(words))
    return made


@pytest.mark.parametrize("linkage", ["kept", "single", "complete"])
def test_a_file_stands_as_a_corpus_of_its_records(
    textsim: Textsim, rng: random.Random, linkage: str
) -> None:
    """The keys are in the order of the records, so that ties go to the same document."""
    options = ["--shingle", rng.choice(["word:1", "char:4"]), "--threshold", "0.6", "--recall", "1"]
    options += ["--guard", "numbers"] if rng.random() < 0.5 else []
    user = ["--scope", "user"] if rng.random() < 0.5 else []
    records = [
        {"id": f"{n:03d}", "text": text + rng.choice(["", " 7", " 8"]), "user": rng.choice("ab")}
        for n, text in enumerate(["", *texts(rng, 240)])
    ]
    write("train.jsonl", records[:120])
    write("test.jsonl", records[120:])
    textsim("index", "train", "train.jsonl", "--create", *options, *user)
    wanted = ["--annotate", "-o", "out.jsonl", "--report", "report.jsonl", "--linkage", linkage]
    wanted += rng.choice([[], ["--keep-up-to", "2"], ["--keep", "longest"]])
    told = textsim("dedupe", "test.jsonl", "--against", "train", *wanted, *user).stderr
    expected = read("out.jsonl"), read("report.jsonl")
    nowhere = ["--database-url", "postgresql://localhost:1/none"]
    words = ["--against", "train.jsonl", *options, *wanted, *user, *nowhere]
    told_of_file = textsim("dedupe", "test.jsonl", *words).stderr
    for cluster in expected[1]:
        cluster["kept"] |= {"corpus": "train.jsonl"} if "corpus" in cluster["kept"] else {}
    assert (read("out.jsonl"), read("report.jsonl")) == expected
    assert any("corpus" in cluster["kept"] for cluster in expected[1])
    assert examples(told_of_file) == examples(told.replace('corpus "train"', '"train.jsonl"'))


def examples(told: str) -> list[str]:
    return [line for line in told.splitlines() if line.startswith(("similarity", " ", "1 doc"))]


def test_what_a_file_to_compare_with_may_be(textsim: Textsim) -> None:
    write("train.jsonl", [{"text": "rain in the north"}, {"text": None}, {"text": "sun\0"}])
    write("test.jsonl", [{"text": "Rain, in the north!"}, {"text": "snow"}])
    arguments = ["dedupe", "test.jsonl", "--against", "train.jsonl"]
    result = textsim(*arguments, "-o", "out.jsonl", "--report", "removed.html", status=1)
    assert "1 kept, 1 removed that match a file" in result.stderr
    assert "not looked at, because it cannot be compared: train.jsonl" in result.stderr
    assert read("out.jsonl") == [{"text": "snow"}]
    page = Path("removed.html").read_text()
    assert "rain in the north" in page
    assert "of the file <" in page
    assert "removed, because a file has a match" in page
    os.mkfifo("pipe.jsonl")
    with subprocess.Popen(["timeout", "60", "cp", "train.jsonl", "pipe.jsonl"]) as writer:
        textsim("dedupe", "test.jsonl", "--against", "pipe.jsonl", "-o", "piped.jsonl", status=1)
        assert writer.wait() == 0
    assert read("piped.jsonl") == read("out.jsonl")
    for output in (["-o", "./train.jsonl"], ["--report", "train.jsonl"]):
        assert "train.jsonl is also --against" in textsim(*arguments, *output, status=2).stderr
    for others in (["--add"], ["--against", "corpus"], ["--judgements", "test.jsonl"]):
        assert "with a file, leave out" in textsim(*arguments, *others, status=2).stderr


@pytest.mark.more
@pytest.mark.parametrize("recall", ["0.95", "1"])
def test_ten_weeks_have_the_sizes_of_one_run(
    textsim: Textsim, db: ts.Database, rng: random.Random, recall: str
) -> None:
    """Keys are in the order of the records, so that ties go to the same document."""
    user = ("--scope", "user") if rng.random() < 0.5 else ()
    options = ["--threshold", rng.choice(["0.5", "0.7"]), "--recall", recall, "--shingle", "word:1"]
    options += ["--guard", "numbers"] if rng.random() < 0.5 else []
    records = [
        {"id": f"{n:03d}", "text": text + rng.choice(["", " 7", " 8"]), "user": rng.choice("ab")}
        for n, text in enumerate(["", *texts(rng, 300)])
    ]
    textsim("corpus", "create", "known", *options, *(["--scoped"] if user else []))
    weeks: list[str] = []
    for week in range(10):
        weeks.append(f"week-{week}.jsonl")
        write(weeks[-1], records[30 * week : 30 * (week + 1)])
        textsim("dedupe", *weeks, "--annotate", "-o", "all.jsonl", *options, *user)
        arguments = ("--against", "known", "--add", "--annotate", "-o", f"out-{week}.jsonl", *user)
        for _ in range(2):
            told = textsim("dedupe", weeks[-1], *arguments).stderr
            assert [{**row, "cluster": 0} for row in read(f"out-{week}.jsonl")] == [
                {**row, "cluster": 0} for row in read("all.jsonl")[30 * week :]
            ]
        if week == 5:
            textsim("rebuild", "known")
    assert "result of an earlier run" in told
    assert db.corpus("known").check() == []


def test_a_rerun_annotates_the_same(textsim: Textsim, db: ts.Database, rng: random.Random) -> None:
    options = ("--shingle", "word:1", "--threshold", "0.6")
    records = [{"id": str(n), "text": text} for n, text in enumerate(texts(rng, 120))]
    write("old.jsonl", records[:40])
    write("new.jsonl", records[40:])
    textsim("index", "known", "old.jsonl", "--create", *options)
    words = ["--against", "known", "--add", "--annotate", "-o", "out.jsonl", "--keep-up-to", "2"]
    textsim("dedupe", "new.jsonl", *words)
    rows = read("out.jsonl")
    assert [row["id"] for row in rows] == [record["id"] for record in records[40:]]
    removed = [row for row in rows if not row["kept"]]
    assert all(row["cluster"] and row["size"] > 1 for row in removed)
    assert all(row["similarity"] >= 0.6 for row in removed)
    kept_of = Counter(row["cluster"] for row in rows if row["kept"] and row["cluster"])
    assert max(kept_of.values()) == 2
    assert len(db.corpus("known")) == 40 + len(rows) - len(removed)
    textsim("dedupe", "new.jsonl", *words)
    assert read("out.jsonl") == rows
    told = textsim("dedupe", "new.jsonl", *words[:-1], "3", status=2).stderr
    assert "is of a run with other records or options" in told


def test_several_corpora_stand_and_a_record_without_text_stays(textsim: Textsim) -> None:
    write("a.jsonl", [{"id": "a", "text": NEWS["a"]}])
    write("d.jsonl", [{"id": "d", "text": NEWS["d"]}])
    for name in "ad":
        textsim("index", name, f"{name}.jsonl", "--create")
    new = [{"id": f"new {key}", "text": text} for key, text in NEWS.items()]
    write("new.jsonl", [*new, {"id": "null", "text": None}, {"id": "NUL", "text": "one\0two"}])
    arguments = ("--against", "a", "--against", "d", "--report", "report.jsonl", "-o", "out.jsonl")
    result = textsim("dedupe", "new.jsonl", *arguments, status=1)
    standing = [c["kept"] for c in read("report.jsonl") if "corpus" in c["kept"]]
    assert {"corpus": "a", "key": "a"} in standing
    assert {"corpus": "d", "key": "d"} in standing
    assert [record["id"] for record in read("out.jsonl")][-2:] == ["null", "NUL"]
    assert '"text" is null' in result.stderr


def test_an_expired_document_does_not_stand(
    textsim: Textsim, db: ts.Database, connection: Connection
) -> None:
    write("old.jsonl", [{"id": "a", "text": NEWS["a"]}])
    textsim("index", "chat", "old.jsonl", "--create", "--keep-for", "30 days")
    for interval, kept in (("1 day", 0), ("-1 day", 1)):
        connection.execute(f"UPDATE textsim.document_1 SET expires_at = now() + '{interval}'")
        textsim("dedupe", "old.jsonl", "--against", "chat", "-o", "out.jsonl")
        assert len(read("out.jsonl")) == kept


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--threshold", "0.5"), "a corpus has settings of its own; leave out --threshold"),
        (("--guard", "numbers"), "a corpus has settings of its own; leave out --guard "),
        (("--scope", "user"), 'corpus "news" is not scoped'),
        (("--against", "newz"), 'corpus "newz" does not exist; did you mean "news"?'),
        (("--add",), "it needs a file for --output or --report"),
    ],
)
def test_options_are_refused(textsim: Textsim, arguments: tuple[str, ...], message: str) -> None:
    write("new.jsonl", [{"id": key, "text": text, "user": 1} for key, text in NEWS.items()])
    textsim("index", "news", "new.jsonl", "--create")
    result = textsim("dedupe", "new.jsonl", "-o", "-", "--against", "news", *arguments, status=2)
    assert message in " ".join(result.stderr.split())
    assert rows(textsim("corpus", "list", "--format", "jsonl"))[0]["corpus"] == "news"


def test_what_cannot_be_added_is_said(textsim: Textsim, db: ts.Database) -> None:
    write("a.jsonl", [{"id": "a", "text": NEWS["a"]}])
    textsim("index", "news", "a.jsonl", "--create")
    nameless, null = {"text": NEWS["d"]}, {"id": "null", "text": None}
    write("new.jsonl", [nameless, null, {"id": "b", "text": "words that nobody wrote before"}])
    arguments = ("--against", "news", "--add", "--report", "report.jsonl")
    result = textsim("dedupe", "new.jsonl", *arguments, status=1)
    assert '"text" is null' in result.stderr
    assert "the key is null" in result.stderr
    assert "1 added, 0 replaced, 0 unchanged, 1 refused" in result.stderr
    assert len(db.corpus("news")) == 2


def test_a_run_that_did_not_end_goes_on_with_the_same_records_only(
    textsim: Textsim, db: ts.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = "some words of the first text", "other words, of quite another text"
    write("old.jsonl", [{"id": "old", "text": old}])
    textsim("index", "news", "old.jsonl", "--create")
    write("new.jsonl", [{"id": "new", "text": new}, {"id": "known", "text": old}])
    arguments = ("--against", "news", "--add", "-o", "out.jsonl", "--report", "report.jsonl")
    with monkeypatch.context() as patch:
        patch.setattr(dedupe_run, "add_documents", add_and_fail)
        result = textsim("dedupe", "new.jsonl", *arguments, status=2)
    assert "the disk is gone" in result.stderr
    assert len(db.corpus("news")) == 2
    assert not Path("out.jsonl").exists()
    write("other.jsonl", [{"id": "new", "text": new}])
    result = textsim("dedupe", "other.jsonl", *arguments, status=2)
    assert "is of a run with other records or options" in result.stderr
    textsim("dedupe", "new.jsonl", *arguments)
    assert [record["id"] for record in read("out.jsonl")] == ["new"]
    assert read("report.jsonl")[0]["kept"] == {"corpus": "news", "key": "old"}
    assert len(db.corpus("news")) == 2
    textsim("dedupe", "other.jsonl", *arguments, status=2)
    assert [record["id"] for record in read("out.jsonl")] == ["new"]
    Path("out.jsonl.added").unlink()
    textsim("dedupe", "other.jsonl", *arguments)
    assert read("out.jsonl") == []


def add_and_fail(*arguments: Any) -> None:
    add_documents(*arguments)
    raise OSError("the disk is gone")


@pytest.mark.more
@pytest.mark.parametrize("kill", sample(range(200), 200))
def test_a_kill_loses_nothing_and_adds_nothing_twice(
    textsim: Textsim, db: ts.Database, rng: random.Random, kill: int
) -> None:
    """The process dies while it adds; run again, it ends with the result of an unbroken run."""
    everything = list(documents(9_000, words=20, planted=0.3, identical=20, seed=kill))
    write("old.jsonl", [{"id": k, "text": t} for k, t in everything[:1_000]])
    write("new.jsonl", [{"id": k, "text": t} for k, t in everything[1_000:]])
    for name in ("news", "again"):
        textsim("index", name, "old.jsonl", "--create")
    arguments = ["new.jsonl", "--add", "-o", "out.jsonl", "--report", "report.jsonl", "--against"]
    command = [sys.executable, "-m", "textsim_db.cli", "dedupe", *arguments, "news"]
    environment = {**os.environ, URL_VARIABLE: db.url}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        wait_for(Path("out.jsonl.added").exists, 60)
        time.sleep(rng.uniform(0, 1))
        process.kill()
    if process.returncode:
        textsim("dedupe", *arguments, "news")
    out, report = read("out.jsonl"), read("report.jsonl")
    Path("out.jsonl.added").unlink()
    textsim("dedupe", *arguments, "again")
    assert read("out.jsonl") == out
    assert [c["removed"] for c in read("report.jsonl")] == [c["removed"] for c in report]
    assert len(db.corpus("news")) == len(db.corpus("again")) == 1_000 + len(out)
    assert db.corpus("news").check() == []


def test_judgements_decide_between_records_and_documents(textsim: Textsim, db: ts.Database) -> None:
    corpus = db.create_corpus("known", shingle="word:1", threshold=0.6)
    hose = "a green garden hose of ten metres with two brass fittings"
    drill = "a cordless drill with a case and a second battery"
    corpus.add_many([("hose", hose), ("other hose", hose + " new"), ("drill", drill)])
    corpus.judge("x", "hose", "different")
    corpus.judge("x", "other hose", "different")
    corpus.judge("y", "drill", "same")
    corpus.judge("z", "w", "same")
    corpus.judge("q", "drill", "unsure")
    records = [
        {"id": "x", "text": hose},  # a match of two documents, judged different from both
        {"id": "y", "text": "an impact driver"},  # no match, but judged the same as a document
        {"id": "z", "text": drill},
        {"id": "w", "text": "boots"},  # judged the same as a record that goes to a document
        {"id": "v", "text": hose},
        {"id": "q", "text": "a lamp"},
    ]
    write("new.jsonl", records)
    arguments = ("--against", "known", "-o", "out.jsonl", "--report", "report.jsonl")
    textsim("dedupe", "new.jsonl", *arguments)
    assert [record["id"] for record in read("out.jsonl")] == ["x", "q"]
    removed = {
        record["key"]: (cluster["kept"]["key"], record["similarity"])
        for cluster in read("report.jsonl")
        for record in cluster["removed"]
    }
    assert removed == dict.fromkeys("yzw", ("drill", 1.0)) | {"v": ("hose", 1.0)}
    frame = pl.DataFrame(records)
    unique, report = ts.dedupe_frame(frame, "text", "id", against=corpus)
    assert unique["id"].to_list() == ["x", "q"]
    assert {row.key: (row.document, row.similarity) for row in report.removed} == removed

    # A file comes before the corpus, and may name a document of it.
    verdicts = [("x", "hose", "unsure"), ("v", "hose", "different")]
    verdicts += [("v", "other hose", "different"), ("q", "drill", "same")]
    write("judged.jsonl", [dict(zip(("a", "b", "verdict"), v, strict=True)) for v in verdicts])
    textsim("dedupe", "new.jsonl", *arguments, "--judgements", "judged.jsonl")
    assert [record["id"] for record in read("out.jsonl")] == ["v"]


@pytest.mark.parametrize("linkage", ["kept", "single", "complete"])
def test_judgements_of_a_corpus_decide_as_those_of_one_run(
    textsim: Textsim, db: ts.Database, rng: random.Random, linkage: str
) -> None:
    """A pair judged different is one of a record and a document; the old records come first."""
    options = ("--shingle", "word:1", "--threshold", "0.6", "--recall", "1", "--linkage", "kept")
    records = [{"id": f"{n:03d}", "text": text} for n, text in enumerate(texts(rng, 240))]
    write("old.jsonl", records[:120])
    textsim("dedupe", "old.jsonl", "-o", "kept.jsonl", *options)
    kept = read("kept.jsonl")
    textsim("index", "known", "kept.jsonl", "--create", *options[:-2])
    corpus = db.corpus("known")
    write("new.jsonl", records[120:])
    arguments = ("--against", "known", "--linkage", linkage, "-o", "out.jsonl")

    def removed_by_corpus() -> list[tuple[str, str]]:
        textsim("dedupe", "new.jsonl", *arguments, "--report", "report.jsonl")
        return [
            (record["key"], cluster["kept"]["key"])
            for cluster in read("report.jsonl")
            for record in cluster["removed"]
            if "corpus" in cluster["kept"]
        ]

    removed = removed_by_corpus()
    apart = rng.sample(removed, len(removed) // 2)
    joined = [(new["id"], rng.choice(kept)["id"]) for new in rng.sample(records[120:], 5)]
    pairs = dict.fromkeys(apart, "different") | dict.fromkeys(joined, "same")
    corpus._judge_many((*pair, verdict) for pair, verdict in pairs.items())
    assert "different" not in map(pairs.get, removed_by_corpus())
    out = {record["id"] for record in read("out.jsonl")}
    assert not out & {a for (a, _), verdict in pairs.items() if verdict == "same"}
    for new in records[120:]:
        matches = {m.key for m in corpus.query(new["text"])}
        if new["id"] in out:
            assert all(pairs.get((new["id"], key)) == "different" for key in matches), new
    # The file says the same as the corpus, so it changes nothing.
    listed = textsim("judgements", "list", "known", "--format", "jsonl").stdout
    Path("judged.jsonl").write_text(listed)
    textsim("dedupe", "new.jsonl", *arguments, "--judgements", "judged.jsonl")
    assert {record["id"] for record in read("out.jsonl")} == out


def test_stale_judgements_are_counted_and_not_obeyed(textsim: Textsim, db: ts.Database) -> None:
    corpus = db.create_corpus("known", shingle="word:1", threshold=0.6, stop_words=["the"])
    corpus.add_many([("hose", "the green garden hose"), ("drill", "the cordless drill")])
    corpus.add_many([(key, f"the old text of {key}") for key in ("x", "y", "z")])
    corpus._judge_many([("x", "hose", "same"), ("y", "hose", "different"), ("z", "drill", "same")])
    corpus.judge("w", "drill", "same")
    records = {
        "x": "words of today",  # was judged the same as the hose, with its old text
        "y": "the green garden hose",
        "z": "the old text of z!",
        "w": "boots",
    }
    write("new.jsonl", [{"id": key, "text": text} for key, text in records.items()])
    arguments = ("--against", "known", "-o", "out.jsonl")
    told = textsim("dedupe", "new.jsonl", *arguments).stderr
    assert [record["id"] for record in read("out.jsonl")] == ["x"]
    assert "2 judgements not obeyed, because a text has changed since" in told
    # A file says the same, and a list without the hashes holds for any text.
    listed = textsim("judgements", "list", "known", "--format", "jsonl").stdout
    Path("judged.jsonl").write_text(listed)
    corpus.unjudge("x", "hose")
    corpus.unjudge("y", "hose")
    textsim("dedupe", "new.jsonl", *arguments, "--judgements", "judged.jsonl")
    assert [record["id"] for record in read("out.jsonl")] == ["x"]
    write("judged.jsonl", [{"a": "y", "b": "hose", "verdict": "different"}])
    textsim("dedupe", "new.jsonl", *arguments, "--judgements", "judged.jsonl")
    assert [record["id"] for record in read("out.jsonl")] == ["x", "y"]


def test_a_week_that_is_added_again_is_counted_once(textsim: Textsim, db: ts.Database) -> None:
    textsim("corpus", "create", "known", "--shingle", "word:1", "--threshold", "0.6")
    hose = "a green garden hose of ten metres"
    week = [{"id": key, "text": text} for key, text in (("a", hose), ("b", hose + "!"), ("c", "x"))]
    write("week.jsonl", week)

    def sizes(name: str, output: str) -> tuple[list[int], str]:
        arguments = ("--against", "known", "--add", "--annotate", "-o", output)
        told = textsim("dedupe", name, *arguments).stderr
        return [record["size"] for record in read(output)], told

    assert sizes("week.jsonl", "1.jsonl")[0] == [2, 2, 1]
    textsim("rebuild", "known")
    for output in ("2.jsonl", "2.jsonl", "3.jsonl"):  # the second run reads the result of the first
        found, told = sizes("week.jsonl", output)
        assert found == [2, 2, 1]
        is_first = "has the result of an earlier run" not in told
        assert "3 records not counted again" in told, is_first
    # Records that are new in a week of old ones are counted, also those without a key.
    write("more.jsonl", [*week, {"id": "d", "text": hose}, {"id": None, "text": hose}])
    found, told = sizes("more.jsonl", "4.jsonl")
    assert found == [4, 4, 1, 4, 4]
    assert "3 records not counted again" in told
    assert sizes("more.jsonl", "5.jsonl")[0] == [5, 5, 1, 5, 5]
    # A document with other words begins anew.
    db.corpus("known").add("a", "another text")
    db.corpus("known").add("a", hose)
    assert sizes("week.jsonl", "6.jsonl")[0] == [2, 2, 1]
    # A forgotten record is counted as new.
    db.corpus("known").forget(["b"], later=True)
    assert sizes("week.jsonl", "7.jsonl")[0] == [3, 3, 1]
    assert db.corpus("known").check() == []
