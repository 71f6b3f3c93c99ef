"""textsim passages, quote and contamination."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.support.commands import Textsim, rows

RUN = "one two three four five six seven eight"


def create(textsim: Textsim) -> None:
    textsim("corpus", "create", "c", "--passages", "6")
    lines = [{"id": "a", "text": f"before it {RUN} after it"}, {"id": "b", "text": "other words"}]
    textsim("index", "c", "-", input="\n".join(map(json.dumps, lines)))


def test_passages_are_shown_in_their_context(textsim: Textsim) -> None:
    create(textsim)
    text = f"P q,\nr s (t {RUN.upper()}! u v)"
    listed = textsim("passages", "c", text, "--format", "jsonl")
    assert rows(listed) == [
        {"words": 8, "key": "a", "in_text": 5, "in_document": 2}
        | {"start": 12, "end": 12 + len(RUN), "passage": RUN.upper()}
    ]
    assert "1 passage in 1 document found" in listed.stderr
    long = textsim("passages", "c", f"{'earlier ' * 9}{RUN} {'later ' * 9}")
    before, after = " ".join(["earlier"] * 3), " ".join(["later"] * 5)
    assert f"{before} [{RUN}] {after} " in long.stdout
    assert f"P q, r s (t [{RUN.upper()}]! u v)" in textsim("passages", "c", text).stdout
    none = textsim("passages", "c", RUN, "--min-words", "9")
    assert "the text has 8 words, and a passage has 9 or more" in none.stderr
    assert "0 passages in 0 documents found" in none.stderr
    refused = textsim("passages", "c", RUN, "--min-words", "5", status=2)
    assert "rebuild it, such as: textsim rebuild c --passages 5" in refused.stderr
    Path("letter.txt").write_text(RUN, encoding="utf-8")
    named = textsim("passages", "c", "letter.txt")
    assert "to search for its content: --file letter.txt" in named.stderr


def test_regions_have_gaps(textsim: Textsim) -> None:
    create(textsim)
    text = "before it one two three x four five six seven eight after it"
    listed = textsim("regions", "c", text, "--gap", "5", "--format", "jsonl")
    (row,) = rows(listed)
    assert (row["words_in_text"], row["in_document"], row["end"]) == (7, 5, len(text))
    assert "1 region found" in listed.stderr


def test_a_quotation_that_is_not_verified_fails(textsim: Textsim) -> None:
    create(textsim)
    exact = textsim("quote", "c", RUN.upper(), "--format", "jsonl")
    (row,) = rows(exact)
    assert (row["verdict"], row["key"], row["pieces"][0]["in_document"]) == ("exact", "a", 2)
    pieces = textsim(
        "quote", "c", "before it one ... six seven eight", "--key", "a", "--format", "csv"
    )
    assert pieces.stdout.splitlines()[1:] == ["pieces,a,1.0,,two three four five,numerals"]
    changed = textsim("quote", "c", RUN.replace("seven", "7"), status=1)
    assert "altered" in changed.stdout
    assert "numbers" in changed.stdout
    absent = textsim("quote", "c", RUN, "--key", "b", status=1)
    assert "absent" in absent.stdout
    assert 'no document "x"' in textsim("quote", "c", RUN, "--key", "x", status=2).stderr
    assert "expected 4 to 500" in textsim("quote", "c", "one two", status=2).stderr
    short = textsim("quote", "c", "one 2 8", "--key", "a", "--shortest", "3", status=1)
    assert "absent" in short.stdout


def test_quotations_of_a_file(textsim: Textsim) -> None:
    create(textsim)
    quoted = [
        ("a", RUN),
        ("a", RUN.replace("seven", "7")),
        ("b", RUN),
        ("x", RUN),
        ("a", "one two"),
    ]
    lines = [json.dumps({"document": key, "text": text}) for key, text in quoted]
    command = ("quotations", "-", "--against", "c", "--format", "jsonl")
    listed = textsim(*command, "--key", "document", input="\n".join(lines), status=1)
    verdicts = rows(listed)
    assert [row["verdict"] for row in verdicts] == ["exact", "altered", "absent"]
    (difference,) = verdicts[1]["differences"]
    assert difference == {"quotation": "7", "document": "seven", "kinds": ["numbers", "numerals"]}
    summary = "3 quotations: 1 exact, 0 pieces, 1 altered, 1 absent; 2 refused"
    for message in (summary, 'no document "x"', "expected 4 to 500"):
        assert message in listed.stderr
    anywhere = textsim(*command, input="\n".join(lines[:1]))
    assert rows(anywhere)[0]["key"] == "a"
    Path("quotes.csv").write_text(f"text\n{RUN} it\n", encoding="utf-8")
    report = ("--report", "quotes.html")
    table = textsim("quotations", "quotes.csv", "--against", "c", *report, status=1)
    assert '"it" for "after"' in " ".join(table.stdout.split())
    assert "<del>it</del> <ins>after</ins>" in Path("quotes.html").read_text(encoding="utf-8")
    absent = textsim("quote", "c", "these words stand in no document at all", status=1)
    assert "only documents with 6 words of the quotation in a row are compared" in absent.stderr


def test_a_report_spares_the_test_set_and_needs_records(textsim: Textsim) -> None:
    create(textsim)
    testset, folder = Path("testset.jsonl"), Path("folder")
    testset.write_text(json.dumps({"id": "q", "text": RUN}))
    folder.mkdir()
    os.symlink("testset.jsonl", "link.jsonl")
    os.link("testset.jsonl", "folder/hard.jsonl")
    command = ("contamination", "--against", "c")
    for arguments, message in [
        (["testset.jsonl", "--report", "testset.jsonl"], "testset.jsonl is also TESTSET"),
        (["testset.jsonl", "--report", "link.jsonl"], "link.jsonl is also TESTSET"),
        (["folder", "--report", "testset.jsonl"], "testset.jsonl is also TESTSET"),
        (["testset.jsonl", "--report", "r.html"], "r.html does not end in .jsonl"),
        (["testset.jsonl", "--report", "r.jsonl", "--format", "csv"], "--report writes JSON lines"),
        (["none.jsonl", "--report", "r.jsonl"], "no record could be compared"),
        (["testset.jsonl", "--key", "nr", "--report", "r.jsonl"], "no record could be compared"),
    ]:
        refused = textsim(*command, *arguments, status=2).stderr
        assert message in " ".join(refused.split())
        assert "0 of 0" not in refused
        assert json.loads(testset.read_text()) == {"id": "q", "text": RUN}
        assert not Path("r.jsonl").exists()


def test_runs_that_a_record_leaves_out_are_counted(textsim: Textsim, tmp_path: Path) -> None:
    textsim("corpus", "create", "c", "--passages", "6")
    lines = [{"id": str(number), "text": RUN} for number in range(3)]
    textsim("index", "c", "-", input="\n".join(map(json.dumps, lines)))
    testset, report = tmp_path / "testset.jsonl", tmp_path / "report.jsonl"
    testset.write_text(json.dumps({"id": "q", "text": f"{RUN} so what"}), encoding="utf-8")
    guarded = ["contamination", str(testset), "--against", "c", "--max-documents", "2"]
    listed = textsim(*guarded, "--format", "jsonl")
    (row,) = rows(listed)
    assert row["documents"] == []
    assert 3 <= row["left_out"] <= 8
    assert "1 record with runs in too many documents to list" in listed.stderr
    textsim(*guarded, "--report", str(report))
    (run,) = json.loads(report.read_text(encoding="utf-8"))["common"]
    assert run["documents"] == 3
    assert run["words"] == row["left_out"]


def test_a_table_shows_the_first_documents_of_a_record(textsim: Textsim) -> None:
    textsim("corpus", "create", "c", "--passages", "6")
    lines = [{"id": f"d{number}", "text": RUN} for number in range(8)]
    textsim("index", "c", "-", input="\n".join(map(json.dumps, lines)))
    command, record = ("contamination", "-", "--against", "c"), json.dumps({"id": "q", "text": RUN})
    assert "  d0, d1, d2, d3, d4 and 3 more  " in textsim(*command, input=record).stdout
    (row,) = rows(textsim(*command, "--json", input=record))
    assert row["documents"] == [f"d{number}" for number in range(8)]
    in_csv = textsim(*command, "--format", "csv", input=record).stdout
    assert '"d0, d1, d2, d3, d4, d5, d6, d7"' in in_csv


def test_a_record_that_cannot_be_compared_is_refused_alone(textsim: Textsim) -> None:
    create(textsim)
    texts = {"q1": RUN, "q2": "a \0", "q3": "a \ud800", "q4": RUN}
    lines = [json.dumps({"id": key, "text": text}) for key, text in texts.items()]
    command = ("contamination", "-", "--against", "c", "--format", "jsonl")
    listed = textsim(*command, input="\n".join(lines), status=1)
    assert [row["key"] for row in rows(listed)] == ["q1", "q4"]
    assert 'refused: record "q2": the text has a NUL character at character 3' in listed.stderr
    assert 'refused: record "q3": the text has a lone surrogate' in listed.stderr
