"""A search warns if it cannot find every match, and gives the figure."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import textsim_db as ts
from tests.support.connections import Connection
from textsim_db.measures import containment, shingles

LOGGER = "textsim_db.read.find_candidates"
TEXT = "the council voted on monday to rebuild the old stone bridge over the river before winter"
BELOW = (
    'threshold 0.5 is below 0.8, the threshold of corpus "c": '
    "13.2 % of the documents at 0.5 are found"
)


def real_texts(count: int, words: int) -> dict[str, str]:
    """Return the first words of the longest modules of the standard library."""
    files = Path(sysconfig.get_path("stdlib")).glob("*.py")
    longest = sorted(files, key=lambda file: -file.stat().st_size)[:count]
    return {
        file.name: " ".join(file.read_text(encoding="utf-8").split()[:words]) for file in longest
    }


def warnings_of(caplog: pytest.LogCaptureFixture, search: Callable[[], object]) -> list[str]:
    caplog.clear()
    search()
    return [record.getMessage() for record in caplog.records if record.name == LOGGER]


@pytest.fixture
def corpus(corpus_db: ts.Database) -> ts.Corpus:
    corpus = corpus_db.create_corpus("c")
    corpus.add_many({"a": TEXT, "b": TEXT + " and spring", "c": TEXT})
    return corpus


@pytest.fixture
def exact(corpus_db: ts.Database) -> ts.Corpus:
    return corpus_db.create_corpus("e", recall=1)


SEARCHES: dict[str, Callable[[ts.Corpus, float], object]] = {
    "query": lambda corpus, threshold: corpus.query(TEXT, threshold),
    "query_many": lambda corpus, threshold: corpus.query_many([TEXT, "two"], threshold),
    "neighbours": lambda corpus, threshold: corpus.neighbours("a", threshold),
    "pairs": lambda corpus, threshold: list(corpus.pairs(threshold)),
    "clusters": lambda corpus, threshold: list(corpus.clusters(threshold)),
    "duplicates": lambda corpus, threshold: list(corpus.duplicates(threshold)),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_every_search_below_the_threshold_of_the_corpus_warns(
    corpus: ts.Corpus, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    search = SEARCHES[name]
    advice = "; to find more: textsim rebuild c --threshold 0.5"
    assert warnings_of(caplog, lambda: search(corpus, 0.5)) == [BELOW + advice]
    assert "0.0 % of the documents at 1e-09" in warnings_of(caplog, lambda: search(corpus, 1e-9))[0]
    for threshold in (0.8, 1.0):
        assert warnings_of(caplog, partial(search, corpus, threshold)) == []


@pytest.mark.parametrize(
    "search",
    [
        "textsim.matches('c', 'the council voted', {})",
        "textsim.neighbours('c', 'a', {})",
        "textsim.pairs('c', {})",
    ],
)
def test_every_search_in_sql_below_the_threshold_of_the_corpus_warns(
    corpus: ts.Corpus, shared_connection: Connection, search: str
) -> None:
    messages: list[str] = []
    shared_connection.add_notice_handler(
        lambda notice: messages.append(f"{notice.severity}: {notice.message_primary}")
    )
    for threshold in ("NULL", "0.8", "1"):
        shared_connection.execute(f"SELECT * FROM {search.format(threshold)}".encode())
    assert messages == []
    shared_connection.execute(f"SELECT * FROM {search.format('0.5')}".encode())
    assert messages == [f"WARNING: {BELOW}"]
    messages.clear()
    shared_connection.execute(f"SELECT * FROM {search.format('1e-9')}".encode())
    assert "0.0 % of the documents at 1e-09 are found" in messages[0]


def test_passages_that_an_exact_corpus_cannot_find_are_announced_with_the_size(
    exact: ts.Corpus, caplog: pytest.LogCaptureFixture
) -> None:
    texts = real_texts(40, 1000)
    assert min(len(text.split()) for text in texts.values()) == 1000
    exact.add_many(texts)
    for key, text in list(texts.items())[:10]:
        passage = " ".join(text.split()[400:500])
        own, size = shingles(passage, "word:3"), len(shingles(text, "word:3"))
        assert containment(own, shingles(text, "word:3")) == 1
        assert exact.query(passage, 0.9, measure="containment") == []
        search = partial(exact.query, passage, 0.9, measure="containment")
        (message,) = warnings_of(caplog, search)
        most = max(m for m in range(1, 1000) if len(own) / m >= 0.8)
        assert most < size, key
        assert message == (
            'containment: the candidates of corpus "e" are chosen by Jaccard similarity: a document '
            f"with more than {most:,} shingles is not found, even if it contains all {len(own):,} of "
            "the text"
        )


@pytest.mark.parametrize("threshold", [0.55, 0.7, 0.8, 1.0])
def test_the_announced_sizes_are_the_largest_and_smallest_that_are_found(
    corpus_db: ts.Database, threshold: float, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = corpus_db.create_corpus("s", shingle="word:1", threshold=threshold, recall=1)
    words = [f"w{i}" for i in range(250)]
    corpus.add_many({f"{size}": " ".join(words[:size]) for size in range(1, 251)})
    for size in (20, 40, 100):
        text = " ".join(words[:size])
        caplog.clear()
        found = [int(m.key) for m in corpus.query(text, 1, measure="overlap")]
        assert (
            f"with more than {max(found)} or fewer than {min(found)} shingles" in caplog.messages[0]
        )


def test_passages_in_bands_are_announced_with_their_probability(
    corpus: ts.Corpus, caplog: pytest.LogCaptureFixture
) -> None:
    passage = " ".join(f"w{i}" for i in range(102))
    start = (
        'containment: the candidates of corpus "c" are chosen by Jaccard similarity: '
        "of the documents "
    )
    assert warnings_of(caplog, lambda: corpus.query(passage, 0.9, measure="containment")) == [
        f"{start}that contain the 100 shingles of the text, 13.2 % are found if they have 200, and "
        "0.0 % if they have 1,000"
    ]
    assert warnings_of(
        caplog, lambda: corpus.query_many([passage], 0.9, measure="containment")
    ) == [
        f"{start}that contain the text, 13.2 % are found if they have 2 times the shingles, and 0.0 % "
        "if they have 10 times the shingles"
    ]


def test_each_measure_warns_unless_it_implies_enough_jaccard_similarity(
    corpus: ts.Corpus, exact: ts.Corpus, caplog: pytest.LogCaptureFixture
) -> None:
    exact.add_many({"a": TEXT})
    for each in (corpus, exact):
        for measure, threshold in (
            ("dice", 0.9),
            ("levenshtein", 0),
            ("levenshtein_similarity", 1),
        ):
            search = partial(each.query, TEXT, threshold, measure=measure)
            assert warnings_of(caplog, search) == []
    dice = "dice 0.6 is a Jaccard similarity of 0.429, below 0.8, the threshold of corpus"
    assert warnings_of(caplog, lambda: corpus.neighbours("a", 0.6, measure="dice")) == [
        f'{dice} "c": 4.7 % of the documents at 0.429 are found'
    ]
    assert warnings_of(caplog, lambda: exact.neighbours("a", 0.6, measure="dice")) == [
        f'{dice} "e": documents below it may be missed'
    ]
    other = 'cosine_similarity: the candidates of corpus "{}" are chosen by Jaccard similarity: '
    assert warnings_of(caplog, lambda: list(corpus.pairs(0.9, "cosine_similarity"))) == [
        other.format("c") + "98.6 % of the documents at 0.8 are found, 2.9 % at 0.4"
    ]
    assert warnings_of(caplog, lambda: list(exact.pairs(0.9, "cosine_similarity"))) == [
        other.format("e") + "documents below 0.8 may be missed"
    ]
    assert warnings_of(caplog, lambda: list(exact.pairs(0.9, "overlap"))) == [
        'overlap: the candidates of corpus "e" are chosen by Jaccard similarity: a document with more '
        "than 1.25 times the shingles of another text is not found, even if it contains that text"
    ]
    assert warnings_of(caplog, lambda: corpus.query("", 0.9, measure="overlap")) == []
