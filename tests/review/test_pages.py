"""The pages of a corpus."""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Generator
from html import unescape
from itertools import pairwise
from urllib.parse import quote, urlencode

import pytest
from starlette.testclient import TestClient

import textsim_db as ts
from tests.review.conftest import Open
from tests.support.review import HOSTILE, check_elements, seen_of, words_of
from tests.support.waiting import wait_for
from textsim_db.results import Pair
from textsim_db.review.corpus_documents import CorpusDocuments
from textsim_db.settings.named_values import Verdict

COUNTS = ("pairs", "clusters", "removals")
WORDS = [f"w{i}" for i in range(40)]


def text(*changed: int) -> str:
    return " ".join(f"x{i}" if i in changed else word for i, word in enumerate(WORDS))


@pytest.fixture
def some(corpus: ts.Corpus) -> ts.Corpus:
    """A corpus with the pairs a-b, a-c and b-c, and with d-e."""
    corpus.add_many(
        {
            "a": text(),
            "b": text(39),
            "c": text(38, 39),
            "d": "on 3 May the council of the town paid 100 dollars for a new bench in the park",
            "e": "on 3 May the council of the town paid 900 dollars for a new bench in the park",
            "f": "nothing of the kind",
        }
    )
    return corpus


def test_the_overview_counts_what_a_threshold_means(some: ts.Corpus, open_review: Open) -> None:
    client = open_review(some)
    page = client.get("/").text
    assert "<dd>6</dd>" in page
    pairs = list(some.pairs())
    for threshold in (0.7, 0.9, 0.96, 0.98, 1.0):
        found = [pair for pair in pairs if pair.similarity >= threshold]
        groups = list(ts.group_pairs(found, linkage="single"))
        removals = sum(len(group.keys) - 1 for group in groups)
        page = client.get(f"/?threshold={threshold}").text
        shown = [re.findall(f'id="{name}">([^<]*)<', page)[0] for name in COUNTS]
        assert shown == [str(len(found)), str(len(groups)), str(removals)]
    (effects,) = re.findall('data-effects="([^"]*)"', client.get("/").text)
    assert json.loads(unescape(effects))[100] == [len(found), len(groups), removals]


def test_pairs_nearest_to_the_threshold_come_first(some: ts.Corpus, open_review: Open) -> None:
    client = open_review(some)
    expected = sorted(some.pairs(), key=lambda pair: pair.similarity)
    assert _listed(client, "/pairs") == [(pair.a, pair.b) for pair in expected]
    low = expected[1].similarity
    chosen = [(p.a, p.b) for p in expected if p.similarity >= low]
    assert _listed(client, f"/pairs?low={low}") == chosen
    assert set(_listed(client, "/pairs?order=spread")) == {(p.a, p.b) for p in expected}
    assert _listed(client, "/pairs?text=council") == [("d", "e")]
    assert _listed(client, "/pairs?text=nowhere") == []
    some.judge("a", "b", "same")
    assert ("a", "b") not in _listed(client, "/pairs")
    assert _listed(client, "/pairs?state=judged") == [("a", "b")]
    assert len(_listed(client, "/pairs?state=any")) == len(expected)


def test_doubtful_pairs_have_a_page(db: ts.Database, some: ts.Corpus, open_review: Open) -> None:
    assert "doubtful" not in open_review(some).get("/pairs").text
    unique = db.create_corpus("u", threshold=0.5, is_unique=True, unique_from=0.9)
    texts = {"a": text(), "b": text(39), "c": text(5, 25), "d": text(5, 25, 39)}
    unique.add_many(texts, unique_from=math.inf)
    expected = {pair[:2] for pair in unique.doubtful()}
    assert 1 < len(expected) < len(list(unique.pairs()))
    client = open_review(unique)
    page = client.get("/pairs?state=doubtful").text
    assert 'href="pairs?state=doubtful" aria-current="page"' in page
    assert set(_listed(client, "/pairs?state=doubtful")) == expected
    unique.judge(*min(expected), "different")
    assert set(_listed(client, "/pairs?state=doubtful")) == expected - {min(expected)}


def test_the_count_is_that_of_the_pairs_shown(corpus: ts.Corpus, open_review: Open) -> None:
    corpus.add_many({str(i): text(i) for i in range(4)})
    corpus.judge("0", "1", "same")
    client = open_review(corpus)
    for state, count in (
        ("open", "5 pairs not judged (6 in all, 1 judged)."),
        ("judged", "1 pair judged (6 in all, 5 not judged)."),
        ("any", "6 pairs (1 judged, 5 not judged)."),
    ):
        assert count in words_of(client.get(f"/pairs?state={state}").text)
    assert "Pair 1 of 1" in client.get("/pair?a=0&b=1&state=judged").text
    assert "Pair 1 of" not in client.get("/pair?a=0&b=1").text

    page = client.get("/pairs").text
    address = unescape(re.findall(r'href="(pair\?[^"]*)"', page)[0])
    for i in range(1, 6):
        page = client.get(address).text
        assert f"Pair {i} of 5" in page
        (form,) = re.findall(r'<form class="judge" method="post" action="([^"]*)"', page)
        sent = client.post(unescape(form), data={"verdict": "different", "seen": ""})
        address = sent.headers["location"]
    # The list stays while its pairs are judged, and one may step back through it.
    for i in range(5, 0, -1):
        page = client.get(address).text
        assert f"Pair {i} of 5" in page
        address = unescape("".join(re.findall(r'href="([^"]*)" data-key="p"', page)))
    assert address == ""
    assert "0 pairs not judged (6 in all, 6 judged)" in words_of(client.get("/pairs").text)


def test_pairs_of_a_language_scope_or_cluster(db: ts.Database, open_review: Open) -> None:
    corpus = db.create_corpus("languages", threshold=0.6, language="auto", scoped=True)
    english = "the council voted on monday to rebuild the old stone bridge over the river"
    german = "der rat der stadt beschloss am montag die alte brücke über den fluss zu erneuern"
    for scope in ("x", "y"):
        for name, text in (("en", english), ("de", german)):
            texts = (text, f"{text} heute")
            corpus.add_many((f"{scope} {name} {i}", t, scope) for i, t in enumerate(texts))
    client = open_review(corpus)
    assert len(_listed(client, "/pairs")) == 4
    assert [a[:4] for a, _ in _listed(client, "/pairs?language=de&scope=y")] == ["y de"]
    assert {a[:4] for a, _ in _listed(client, "/pairs?language=en")} == {"x en", "y en"}
    assert _listed(client, "/pairs?scope=none") == []
    assert _listed(client, "/pairs?cluster=x+en+0") == [("x en 0", "x en 1")]
    assert _listed(client, "/pairs?cluster=none") == []


def test_pairs_that_differ_in_numbers_only_come_early(corpus: ts.Corpus, open_review: Open) -> None:
    corpus.add_many({f"w{i}": text(*range(i)) for i in range(3)})
    corpus.add_many({f"n{i}": f"{text(20)} {text(20)} in {i} days" for i in range(2)})
    client = open_review(corpus)
    by_distance = _listed(client, "/pairs?order=near")
    assert by_distance.index(("n0", "n1")) > 1
    assert _listed(client, "/pairs")[1] == ("n0", "n1")
    assert _listed(client, "/pairs?order=warned") == [("n0", "n1")]
    assert "only numbers" in client.get("/pairs?order=warned").text
    assert sorted(_listed(client, "/pairs")) == sorted(by_distance)


def test_while_pairs_are_read_pages_show_a_few(corpus: ts.Corpus, open_review: Open) -> None:
    is_released = threading.Event()

    class Slow(CorpusDocuments):
        def pairs(self) -> Generator[Pair[str], None, None]:
            is_released.wait()
            yield from super().pairs()

    # Each document matches one other document, so the estimate is exact.
    texts = [" ".join(f"t{i}w{j}" for j in range(30)) for i in range(150)]
    for i, words in enumerate(texts):
        corpus.add_many({f"a{i}": words, f"b{i}": f"{words} end"})
    client = open_review(Slow(corpus), wait=False)
    page = client.get("/").text
    assert "Estimated from the matches of 200 random documents" in page
    assert "<dd>300</dd>" in page
    assert re.findall('id="pairs">([^<]*)<', page) == ["150"]
    assert client.get("/progress").json() == {"pairs": 0, "complete": False}
    assert len(_listed(client, "/pairs")) == 25
    (a, b), *_ = _listed(client, "/pairs")
    sent = client.post("/judge", params={"a": a, "b": b}, data={"verdict": "same", "seen": ""})
    assert sent.status_code == 303
    assert client.get("/clusters").status_code == client.get("/precision").status_code == 200
    is_released.set()
    wait_for(lambda: client.get("/progress").json()["complete"])
    page = client.get("/").text
    assert "Estimated" not in page
    assert re.findall('id="clusters">([^<]*)<', page) == ["150"]


def test_a_blind_page_has_no_similarity(some: ts.Corpus, open_review: Open) -> None:
    client = open_review(some)
    for path in ("/pairs?blind=1", "/pair?a=a&b=b&blind=1"):
        assert re.search(r"\b0\.\d{3}\b", client.get(path).text) is None
        assert re.search(r"\b0\.\d{3}\b", client.get(path.replace("blind=1", "")).text)


def test_clusters_show_their_members_and_weakest_link(some: ts.Corpus, open_review: Open) -> None:
    client = open_review(some)
    assert "2 clusters" in client.get("/clusters").text
    page = words_of(client.get("/cluster?key=b").text)
    assert "Cluster of 3 documents" in page
    assert "Representative: a" in page
    assert "Cluster of 1 document" in words_of(client.get("/cluster?key=f").text)
    assert client.get("/cluster?key=none").status_code == 404
    some.track()
    some.update_clusters()
    client = open_review(some)
    assert "linkage kept" in client.get("/clusters").text
    page = words_of(client.get("/cluster?key=b").text)
    assert "Cluster of 3 documents" in page
    assert "created" in page


def test_a_cluster_of_many_documents_is_warned_of(corpus: ts.Corpus, open_review: Open) -> None:
    corpus.add_many({f"k{i}": text(i) for i in range(10)})
    client = open_review(corpus)
    pages = ("/", "/effect?threshold=0.7", "/clusters")
    for path in pages:
        page = words_of(client.get(path).text)
        assert "One cluster has 10 of 10 documents (100 %)" in page, path
    assert "One cluster has" not in client.get("/effect?threshold=1").text
    (link,) = re.findall('href="(cluster[^"]*inspect=1)"', client.get("/").text)
    assert "Cluster of 10 documents" in client.get(unescape(link)).text
    remedy = words_of(client.get("/help").text)
    assert "textsim rebuild NAME --boilerplate 0.01" in remedy
    corpus.add_many({f"other{i}": f"a{i} b{i} c{i} d{i} e{i}" for i in range(91)})
    for path in pages:
        assert "One cluster has" not in open_review(corpus).get(path).text


def test_a_cluster_says_when_a_cut_splits_it(db: ts.Database, open_review: Open) -> None:
    corpus = db.create_corpus("chain", threshold=0.6, recall=1.0, shingle="word:1")
    corpus.add_many({"a": text(), "b": text(*range(8)), "c": text(*range(16))})
    page = words_of(open_review(corpus).get("/cluster?key=a").text)
    assert "the cluster splits only if no other chain of pairs connects the two sides" in page
    assert "Compared with a" in page
    ab, ac = 32 / 48, "no pair"
    members = page[page.index("Compared with") :]
    assert re.search(rf"{ab:.3f} b .* {ac} c ", members)


def test_counts_of_clusters_by_judgements_are_explained(some: ts.Corpus, open_review: Open) -> None:
    client = open_review(some)
    assert "The overview counts" not in client.get("/clusters").text
    some.judge("d", "e", "different")
    page = words_of(client.get("/clusters").text)
    assert "1 cluster at" in page
    assert "The overview counts 2, because there no judgement cuts or joins a cluster." in page


def test_an_empty_corpus_has_all_pages(corpus: ts.Corpus, open_review: Open) -> None:
    client = open_review(corpus)
    for path in ("/", "/pairs", "/pairs?order=spread", "/clusters", "/precision", "/help"):
        assert client.get(path).status_code == 200


STATUSES = {
    200: "/?threshold=nan /?threshold=1e999 /?threshold=-1 /pairs?start=999999 "
    "/pairs?low=x&high=&state=z&order=%00&start=99999999999 /clusters?start=-1&threshold=2",
    400: "/pair?a=a /pair?a=a&b=a",
    404: "/pair?a=a&b=missing /pair?a=%00&b=a /pair?a=%ff&b=a /none /static/../pages.py "
    "/static/%2e%2e/pages.py",
    405: "/judge",
}
"""The addresses with each status."""


def test_an_address_that_makes_no_sense_is_answered(some: ts.Corpus, open_review: Open) -> None:
    client = open_review(some)
    for status, paths in STATUSES.items():
        for path in paths.split():
            assert client.get(path).status_code == status, path


def test_texts_and_keys_are_escaped_on_every_page(corpus: ts.Corpus, open_review: Open) -> None:
    words = " ".join(f"word{i}" for i in range(30))
    corpus.add_many({f"{key}": f"{key} {words}" for key in HOSTILE})
    corpus.judge(HOSTILE[0], HOSTILE[1], "same", note=HOSTILE[-2])
    client = open_review(corpus)
    paths = ["/", "/pairs?state=any", "/clusters", "/precision", "/none?" + quote(HOSTILE[0])]
    paths += [f"/pairs?text={quote(hostile)}" for hostile in HOSTILE]
    paths += [f"/cluster?key={quote(hostile)}" for hostile in HOSTILE]
    paths += ["/pair?" + urlencode({"a": a, "b": b}) for a, b in pairwise(HOSTILE)]
    for path in paths:
        page = client.get(path).text
        # A field holds what its user typed; a browser keeps its direction inside the field.
        outside = re.sub(r'name="text"[^>]*>', "", page)
        assert "\u202e" not in outside
        assert "\u2066" not in outside
        check_elements(page)
    for key in HOSTILE[1:]:
        address = "/pair?" + urlencode({"a": HOSTILE[0], "b": key})
        page = client.get(address).text
        (form,) = re.findall(r'<form class="judge" method="post" action="([^"]*)"', page)
        note = {"verdict": "different", "seen": seen_of(page)}
        assert client.post(unescape(form), data=note).status_code == 303, key
    judged = {(j.a, j.b) for j in corpus.judgements()}
    assert judged == {(min(HOSTILE[0], key), max(HOSTILE[0], key)) for key in HOSTILE[1:]}


@pytest.mark.more
def test_a_huge_word_is_cut_and_the_page_stays_small(corpus: ts.Corpus, open_review: Open) -> None:
    words = " ".join(f"word{i}" for i in range(30))
    corpus.add_many({"big": f"{words} {'x' * 1_000_000}", "other": f"{words} {'y' * 1_000_000}"})
    corpus.add("long", f"{words} " * 5_000)
    client = open_review(corpus)
    page = client.get("/pair?a=big&b=other")
    assert page.status_code == 200
    assert len(page.content) < 200_000
    assert "more are not on this page" in page.text
    assert "first 20,000 words" in client.get("/pair?a=big&b=long").text


def _listed(client: TestClient, path: str) -> list[tuple[str, str]]:
    keys = re.findall(r'<bdi class="key">([^<]*)</bdi>', client.get(path).text)
    return list(zip(keys[::2], keys[1::2], strict=True))


PAIRS = 25
TURN = 12
"""Pairs with fewer different words are the same."""


@pytest.fixture
def graded(db: ts.Database) -> ts.Corpus:
    """A corpus of pairs, of which number i has i of 50 words changed."""
    corpus = db.create_corpus("graded", threshold=0.3, recall=1.0, shingle="word:1")
    for i in range(PAIRS):
        words = [f"p{i}w{j}" for j in range(50)]
        corpus.add(f"a{i:02}", " ".join(words))
        corpus.add(f"b{i:02}", " ".join(words[i:] + [f"p{i}x{j}" for j in range(i)]))
    return corpus


def test_without_judgements_nobody_can_say(graded: ts.Corpus, open_review: Open) -> None:
    page = words_of(open_review(graded).get("/precision").text)
    assert "Nobody can say yet whether the threshold in use, 0.30, is good" in page
    assert "judgements are used" not in page
    assert "textsim" not in page


def test_the_page_begins_with_a_verdict(graded: ts.Corpus, open_review: Open) -> None:
    for i in range(PAIRS):
        graded.judge(f"a{i:02}", f"b{i:02}", "same" if i < TURN else "different")
    graded.judge("a00", "b00", "unsure", replaces="same")
    graded.judge("a00", "b01", "different")
    page = words_of(open_review(graded).get("/precision").text)
    assert "The threshold 0.63 is better than 0.30, which is in use." in page
    used = "24 of 26 judgements are used here. Left out: 1 unsure, 1 of pairs that were not read."
    assert used in page
    assert "100 % of the pairs are the same (95 % interval:" in page
    order = ["is better than", "Judge more", "textsim rebuild graded --threshold 0.63"]
    places = [page.index(each) for each in order]
    assert places == sorted(places)
    assert "It replaces the index; searches go on" in page
    assert "It changes nothing" in page


def test_verdicts_of_one_kind_move_the_threshold(graded: ts.Corpus, open_review: Open) -> None:
    client = open_review(graded)
    steps = [(Verdict.SAME, None, 0.2), (Verdict.DIFFERENT, Verdict.SAME, 0.4)]
    for verdict, other, threshold in steps:
        for i in range(PAIRS):
            graded.judge(f"a{i:02}", f"b{i:02}", verdict, replaces=other)
        page = words_of(client.get("/precision").text)
        name = "the same" if other is None else verdict
        assert f"All 25 pairs that were judged are {name}" in page
        # All pairs are judged, so nothing of them is unknown.
        share = "100 % of the pairs are the same (95 % interval: 100–100 %)."
        if verdict == "different":
            share = share.replace("100", "0")
        assert f"At 0.30 or above, {share}" in page
        assert f"textsim rebuild graded --threshold {threshold:.2f}" in page
        assert "Nobody can say" not in page


def test_a_rebuild_is_noticed(graded: ts.Corpus, open_review: Open) -> None:
    client = open_review(graded)
    assert "was rebuilt" not in client.get("/").text
    graded.rebuild(threshold=0.5)
    for path in ("/", "/pairs", "/clusters", "/precision", "/judgements"):
        page = words_of(client.get(path).text)
        assert "The corpus was rebuilt meanwhile." in page, path


def test_a_good_threshold_is_called_good(graded: ts.Corpus, open_review: Open) -> None:
    for i in range(PAIRS):
        graded.judge(f"a{i:02}", f"b{i:02}", "same" if i < PAIRS - 1 else "different")
    page = words_of(open_review(graded).get("/precision").text)
    assert "The threshold in use, 0.30, is good: none is clearly better." in page
