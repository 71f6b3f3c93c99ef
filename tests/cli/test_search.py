"""textsim query, neighbours, pairs and clusters, in every format."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path

import pytest

from tests.support.commands import NEWS, Textsim, rows
from textsim_db.cli import output

BELOW = (
    'threshold 0.5 is below 0.8, the threshold of corpus "news": 13.2 % of the documents at 0.5 are '
    "found; to find more: textsim rebuild news --threshold 0.5\n"
)


def test_results_in_each_format(news: Textsim) -> None:
    query = ("query", "news", NEWS["a"])
    for command, keys in (
        (query, "abc"),
        ((*query, "--max-results", "2"), "ab"),
        ((*query, "--threshold", "0.95"), "ab"),
        (("neighbours", "news", "a"), "bc"),
    ):
        found = rows(news(*command, "--format", "jsonl"))
        assert [row["key"] for row in found] == list(keys)
        assert found[0].items() >= {"similarity": 1.0}.items()
        lines = csv.DictReader(io.StringIO(news(*command, "--format", "csv").stdout))
        assert [line["key"] for line in lines] == list(keys)
        table = [line.split() for line in news(*command).stdout.splitlines()]
        assert table[0] == ["similarity", "key"]
        assert [line[0] for line in table[2:]] == [f"{row['similarity']:.4f}" for row in found]
        assert [line[1] for line in table[2:]] == list(keys)
    pairs = news("pairs", "news", "--format", "jsonl")
    assert sorted(f"{row['a']}{row['b']}" for row in rows(pairs)) == ["ab", "ac", "bc"]
    assert pairs.stderr == "3 pairs found\n"
    assert news("pairs", "news").stdout.splitlines()[2].split() == ["1.0000", "a", "b"]
    result = news("neighbours", "news", "x", status=2)
    assert result.stderr == 'error: corpus "news" has no document "x"\n'


def test_searches_of_a_guarded_corpus_say_what_differs(textsim: Textsim, tmp_path: Path) -> None:
    texts = {"a": "paid on monday by him: 4711", "b": "paid on monday by him: 4712"}
    path = tmp_path / "invoices.jsonl"
    path.write_text("".join(json.dumps({"id": k, "text": t}) + "\n" for k, t in texts.items()))
    textsim("corpus", "create", "invoices", "--threshold", "0.5", "--guard", "numbers")
    textsim("index", "invoices", str(path))
    query = ("query", "invoices", texts["a"])
    assert [row["differs"] for row in rows(textsim(*query, "--json"))] == [[], ["numbers"]]
    (_, line) = csv.DictReader(io.StringIO(textsim(*query, "--format", "csv").stdout))
    assert line["differs"] == "numbers"
    compared = textsim("compare", "a", "b", "--corpus", "invoices").stderr
    assert 'The guard numbers keeps them apart: "4711" in the first, "4712" in the' in compared
    assert rows(textsim("clusters", "invoices", "--format", "jsonl")) == []


def test_a_long_table_looks_like_a_short_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = ["ключ", "漢字", "e\u0301", "\u202eshalom", "a\nb", ""]
    rows_ = [(i / 7, key * (i % 3), i, ("one", key)) for i, key in enumerate(keys * 3)]
    columns = ("similarity", "a", "number", "keys")
    tables = []
    for most in (len(rows_), len(rows_) - 1):
        monkeypatch.setattr(output, "_MOST_LAID_OUT", most)
        assert output.write(columns, rows_, output.Format.TABLE) == len(rows_)
        tables.append([line.rstrip() for line in capsys.readouterr().out.splitlines()])
    assert tables[0] == tables[1]


def test_query_from_files(news: Textsim) -> None:
    Path("q.txt").write_text(NEWS["d"])
    expected = news("query", "news", NEWS["d"]).stdout
    assert expected
    assert news("query", "news", "--file", "q.txt").stdout == expected
    assert news("query", "news", "--file", "-", input=NEWS["d"]).stdout == expected
    assert news("query", "news", "-", input=NEWS["d"]).stdout == expected
    for name in ("q.jsonl", "q.csv.gz"):
        text = NEWS["d"].encode()
        Path(name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        result = news("query", "news", "--file", name)
        assert result.stdout == expected
        assert result.stderr == (f"{name} is searched for as one text, not document by document\n")
    result = news("query", "news", "--file", "none", status=2)
    assert result.stderr == "error: none: cannot be read: No such file or directory\n"


def test_a_text_without_words_is_named(news: Textsim) -> None:
    for text in ("", " !! "):
        assert "the text has no words that count" in news("query", "news", text).stderr
    assert "no words" not in news("query", "news", "nothing").stderr
    news("corpus", "create", "exact", "--recall", "1", "--stop-words", "en")
    assert "the text has no words that count" in news("query", "exact", "and the").stderr


def test_nothing_found(news: Textsim) -> None:
    for args in (["query", "news", "nothing like it"], ["neighbours", "news", "d"]):
        for threshold in ([], ["--threshold", "0.8"]):
            result = news(*args, *threshold)
            assert (result.stdout, result.stderr) == ("", "no document is that similar\n")
        # 1 - (1 - 0.5^7)^18
        assert news(*args, "--threshold", "0.5").stderr == BELOW + "no candidate is that similar\n"


WRONG: list[tuple[list[str], str]] = [
    (["--max-results", "0"], "max_results is 0; expected 1 or more"),
    (["--max-results", "x"], "invalid value for '--max-results': \"x\" is not a whole number"),
    (["--threshold", "abc"], "invalid value for '--threshold': \"abc\" is not a number"),
    (["--threshold", "0"], "threshold is 0"),
    (["--threshold", "nan"], "threshold is nan"),
    (["--file", "x"], "give either a text or --file"),
    (["--format", "json"], "'--format': \"json\" is not one of table, jsonl, csv"),
]


def test_wrong_usage(news: Textsim) -> None:
    for args, message in WRONG:
        assert message in news("query", "news", "text", *args, status=2).stderr


def test_long_and_strange_keys_stay_whole_in_tables(textsim: Textsim) -> None:
    keys = ["k" * 900, "[red]" + "漢" * 200, "a\x1b[31mb\nc"]
    lines = (json.dumps({"id": key, "text": "the same few words"}) for key in keys)
    Path("a.jsonl").write_text("\n".join(lines))
    textsim("index", "c", "a.jsonl", "--create")
    table = textsim("query", "c", "the same few words").stdout
    for shown in (keys[0], keys[1], r"a\x1b[31mb\nc"):
        assert shown in table
    assert "\x1b" not in table
