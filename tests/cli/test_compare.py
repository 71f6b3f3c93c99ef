"""textsim compare: files, texts and keys; the HTML page; warnings."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import textsim_db as ts
from tests.support.commands import Textsim
from textsim_db.measures import signature_estimate
from textsim_db.sketch import sketch_texts
from textsim_db.text.storable import MAX_BYTES

DAYS = [(5, "Monday"), (6, "Friday")]


def test_files(textsim: Textsim, tmp_path: Path) -> None:
    old, new, page = tmp_path / "old.txt", tmp_path / "new.txt", tmp_path / "page.html"
    old.write_text("The bridge is not safe, they say. Nobody uses it now.")
    new.write_text("The bridge is safe, they say. Nobody uses it now.")
    result = textsim("compare", str(old), str(new), "--html", str(page))
    assert "The bridge is [-not-] safe, they say." in result.stdout
    assert "levenshtein, of words" in result.stdout
    assert "differ only in negations: both may have to be kept" in result.stderr
    assert page.read_text().startswith("<!DOCTYPE html>")
    old.write_text("if (a == b) return")
    new.write_text("if  (a != b)\nreturn")
    result = textsim("compare", str(old), str(new))
    assert result.stdout.startswith("if  [-(a ==-]{+(a !=+} b)\nreturn")
    assert "differ only in symbols" in result.stderr
    assert "there is no such file" in textsim("compare", str(old), "nothing", status=2).stderr
    old.write_bytes(b"\xff")
    told = textsim("compare", str(old), str(new), status=2).stderr
    assert "not UTF-8: byte 0xff at offset 0; convert it to UTF-8" in told
    wrong = textsim("compare", "a", "b", "--html", str(tmp_path / "no" / "page"), status=2)
    assert "cannot be written" in wrong.stderr


@pytest.mark.more
def test_standard_input_pipes_and_control_characters(tmp_path: Path) -> None:
    command = f'"{sys.executable}" -m textsim_db.cli compare'
    file = tmp_path / "a.txt"
    file.write_text("the \x1b]0;title\x07cat sat")
    for other in ("<(printf 'the dog sat')", "- <<< 'the dog sat'"):
        done = subprocess.run(
            ["bash", "-c", f"{command} a.txt {other}"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path(ts.__file__).parents[1])},
            capture_output=True,
            text=True,
            check=True,
        )
        assert "dog" in done.stdout
        assert "\x1b" not in done.stdout
        assert "compared as texts" not in done.stderr


def test_files_have_the_limit_of_texts(textsim: Textsim, tmp_path: Path) -> None:
    huge, small = tmp_path / "huge.txt", tmp_path / "small.txt"
    huge.touch()
    os.truncate(huge, MAX_BYTES + 1)
    small.write_text("one")
    for names in ((huge, small), (small, huge)):
        refused = textsim("compare", *map(str, names), status=2).stderr
        assert "huge.txt: the file is larger than 134,217,728 bytes" in refused
    twice = textsim("compare", "-", "-", status=2)
    assert "standard input is one text" in twice.stderr


def test_an_input_is_not_overwritten(textsim: Textsim) -> None:
    old, new = Path("old.txt"), Path("new.txt")
    old.write_text("one")
    new.write_text("two")
    result = textsim("compare", "old.txt", "new.txt", "--html", "new.txt", status=2)
    told = " ".join(result.stderr.split())
    assert "new.txt is also a file that is compared; name another file" in told
    assert new.read_text() == "two"


def test_keys(textsim: Textsim, database_url: str) -> None:
    with ts.connect(database_url) as db:
        corpus = db.create_corpus("news", shingle="char:5")
        corpus.add_many([("a", "Pay 5 euro on Monday"), ("b", "Pay 6 euro on Friday"), ("c", "")])
        found = corpus.explain("a", "b")
        expected = ts.explain("Pay 5 euro on Monday", "Pay 6 euro on Friday", "char:5")
        assert found.measures == expected.measures
        assert found.distinctions == ["dates", "numbers"]
        said = (f"Pay {euro} euro on {day}" for euro, day in DAYS)
        signatures = [sketch_texts.signature(text, corpus.config) for text in said]
        assert found.estimate == signature_estimate(*signatures)
        assert set(corpus.explain("c", "c").measures.values()) == {0.0, 90.0}
        with pytest.raises(ts.DocumentNotFound, match='has no document "d"'):
            corpus.explain("a", "d")
        for key in ("d" * 900, "d" * 9000):  # the second one is too long to be stored
            for search in (corpus.neighbours, partial(corpus.explain, "a")):
                with pytest.raises(ts.DocumentNotFound, match=r"has no document .d{90,100}\W?$"):
                    search(key)
    result = textsim("compare", "a", "b", "--corpus", "news")
    assert "pay [-5-]{+6+} euro on [-monday-]{+friday+}" in result.stdout
    wrong = textsim("compare", "a", "b", "--corpus", "news", "--shingle", "word:1", status=2)
    assert "a corpus has its own" in wrong.stderr
    assert 'no document "z"' in textsim("compare", "a", "z", "--corpus", "news", status=2).stderr


def test_documents_of_different_scopes(textsim: Textsim, db: ts.Database) -> None:
    corpus = db.create_corpus("c", scoped=True)
    corpus.add_many((key, "one two three four", scope) for key, scope in ("ax", "by", "cx"))
    assert (corpus.explain("a", "b").scopes, corpus.explain("a", "c").scopes) == (("x", "y"), None)
    note = 'They never match: the scope of the first is "x", of the second "y".'
    assert note in textsim("compare", "a", "b", "--corpus", "c").stderr
    assert "scope" not in textsim("compare", "a", "c", "--corpus", "c").stderr


def test_texts_without_words(textsim: Textsim) -> None:
    for a, b in ("%", "%"), ("…", "?!"):
        result = textsim("compare", a, b)
        assert "the texts have no words" in result.stderr
        assert a in result.stdout
        assert b in result.stdout
    result = textsim("compare", "+", "-", status=2)
    assert '"-" is standard input' in result.stderr
