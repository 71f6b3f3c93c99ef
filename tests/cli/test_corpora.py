"""textsim corpus: corpora are created, listed, shown and dropped."""

from __future__ import annotations

from pathlib import Path

from tests.support.commands import (
    Textsim,
    rows,
)


def test_create_shows_the_settings(textsim: Textsim) -> None:
    shown = textsim("corpus", "create", "news").stdout
    assert "bands            18\n" in shown
    assert "rows             7\n" in shown
    assert "        0.8                   0.9855 \n" in shown
    assert textsim("corpus", "show", "news").stdout == shown


def test_create_with_settings(textsim: Textsim) -> None:
    options = {"shingle": "char:5", "threshold": "0.5", "recall": "0.9", "num-hashes": "64"}
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    textsim("corpus", "create", "news", *words, "--seed", "3")
    (row,) = rows(textsim("corpus", "show", "news", "--format", "jsonl"))
    assert row["shingle"] == "char:5"
    assert (row["threshold"], row["recall"], row["num_hashes"]) == (0.5, 0.9, 64)
    assert row["seed"] == 3
    textsim("corpus", "create", "other", "--bands", "10", "--rows", "3")


def test_create_again(textsim: Textsim) -> None:
    textsim("corpus", "create", "news")
    result = textsim("corpus", "create", "news", status=2)
    assert result.stderr == 'error: corpus "news" exists already\n'
    textsim("corpus", "create", "news", "--exist-ok")
    result = textsim("corpus", "create", "news", "--exist-ok", "--threshold", "0.5", status=2)
    assert result.stderr == (
        'error: corpus "news" exists with other settings: threshold is 0.8 there, not 0.5; '
        "use another name, or change the settings with textsim rebuild\n"
    )


def test_rebuild_makes_a_corpus_unique(textsim: Textsim) -> None:
    text = "the quick brown fox jumps over the lazy dog and runs into the dark green forest"
    lines = [f'{{"id": "{key}", "text": "{text} {key}"}}' for key in "ab"]
    textsim("index", "news", "-", "--create", input="\n".join(lines))
    result = textsim("rebuild", "news", "--unique", status=2)
    assert (
        '1 pair of its documents match: "a" and "b" (0.875); nothing was changed' in result.stderr
    )
    assert "unique           no\n" in textsim("corpus", "show", "news").stdout
    textsim("remove", "news", "b")
    assert "unique           yes\n" in textsim("rebuild", "news", "--unique").stdout
    assert "unique           no\n" in textsim("rebuild", "news", "--no-unique").stdout


def test_list(news: Textsim) -> None:
    listed = rows(news("corpus", "list", "--format", "jsonl"))
    assert listed == [{"corpus": "news", "documents": 4, "shingle": "word:3", "threshold": 0.8}]
    header, _, row = news("corpus", "list").stdout.splitlines()
    assert row.split() == ["news", "4", "word:3", "0.8"]
    assert row.index("0.8") + len("0.8") == header.index("threshold") + len("threshold")


def test_drop_needs_a_yes(news: Textsim) -> None:
    result = news("corpus", "drop", "news", status=2)
    assert result.stderr == (
        'error: this would remove the corpus "news" with 4 documents; '
        "there is no terminal to ask on: give --yes to confirm\n"
    )
    news("corpus", "drop", "news", "--yes")
    assert "no corpus" in news("corpus", "list").stderr


def test_unknown(news: Textsim) -> None:
    for command in (
        ["corpus", "show"],
        ["pairs"],
        ["clusters"],
        ["check"],
        ["corpus", "drop"],
    ):
        result = news(*command, "newz", status=2)
        assert result.stderr == 'error: corpus "newz" does not exist; did you mean "news"?\n'


def test_stop_words(textsim: Textsim, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("The\nof\n\nDon't\n")
    result = textsim("corpus", "create", "news", "--stop-words", str(words))
    assert "stop words       don of t the" in result.stdout
    textsim("corpus", "create", "news", "--stop-words", str(words), "--exist-ok")
    wrong = textsim("corpus", "create", "news", "--stop-words", "en", "--exist-ok", status=2)
    assert "stop words is 4 words (don, of, t, the) there, not" in wrong.stderr
    assert "stop words       none" in textsim("corpus", "create", "plain").stdout
    wrong = textsim("corpus", "create", "other", "--stop-words", "xx", status=2)
    assert 'there are no stop words for "xx"' in wrong.stderr
    wrong = textsim("corpus", "create", "other", "--stop-words", "no/such/file", status=2)
    assert "no/such/file" in wrong.stderr
    file = tmp_path / "news.jsonl"
    file.write_text('{"id": 1, "text": "the bridge of"}\n{"id": 2, "text": "of the bridge"}\n')
    result = textsim("dedupe", str(file), "-o", "-", "--stop-words", "en", "--shingle", "word:1")
    assert result.stdout.splitlines() == ['{"id": 1, "text": "the bridge of"}']
