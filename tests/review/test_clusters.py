"""Clusters of the pages beside those of the corpus, with judgements."""

from __future__ import annotations

import random
import re
from html import unescape

from starlette.testclient import TestClient

import textsim_db as ts
from tests.review.conftest import Open
from textsim_db.review.corpus_documents import CorpusDocuments
from textsim_db.review.pair_arrays import Pairs
from textsim_db.review.reviewed_clusters import ChainClusters, Judged
from textsim_db.review.survey import read_pairs

WORDS = [f"w{i}" for i in range(40)]


def test_clusters_obey_judgements_as_in_the_corpus(corpus: ts.Corpus, rng: random.Random) -> None:
    keys = [f"k{i:02}" for i in range(40)]
    for key in keys:
        places = rng.sample(range(40), rng.randrange(12))
        family = rng.choice("xyz")
        corpus.add(key, " ".join(f"{family}{'y' * (i in places)}{w}" for i, w in enumerate(WORDS)))
    *_, pairs = read_pairs(corpus.pairs(), 0.7)
    assert isinstance(pairs, Pairs)
    for _ in range(12):
        a, b = rng.sample([*keys, "removed"], 2)
        if not any({a, b} == {j.a, j.b} for j in corpus.judgements()):
            corpus.judge(a, b, rng.choice(["same", "different", "different", "unsure"]))
        judged = Judged.of(corpus.judgements())
        shown = ChainClusters(pairs, 0.7, judged, set(keys))
        expected = list(corpus.clusters(judgements=True))
        found = shown.page(0, len(shown))
        assert [tuple(each.keys) for each in found] == [each.keys for each in expected]
        weakest = [each.links[0][2] or 1 for each in found]
        assert weakest == [each.weakest for each in expected]


def test_a_cluster_is_cut_at_its_weakest_link(corpus: ts.Corpus, open_review: Open) -> None:
    base = " ".join(WORDS)
    corpus.add_many({"a": base, "b": f"{base} end", "c": f"{base} end of all", "far": "else"})
    client = open_review(corpus)
    page = client.get("/cluster?key=a").text
    assert "Cluster of 3 documents" in page
    for _ in range(2):  # a chain of two other links holds it together after the first cut
        page = _press(client, page, 'Different: [^"]* c$')
    assert "Cluster of 2 documents" in page
    assert "No pair leads outside" not in page
    page = _press(client, page, 'Same: [^"]* c$')
    assert "Cluster of 3 documents" in page
    client.post("/judge?a=a&b=far&of_cluster=a", data={"verdict": "same", "seen": ""})
    assert "Cluster of 4 documents" in client.get("/cluster?key=far").text
    assert [len(each.keys) for each in corpus.clusters(judgements=True)] == [4]


def test_a_template_that_holds_a_cluster_is_named(corpus: ts.Corpus, open_review: Open) -> None:
    template = " ".join(WORDS[:30])
    corpus.add_many({f"t{i}": f"{template} own{i} other{i}" for i in range(8)})
    corpus.add_many({f"o{i}": f"{template[:80]} " + f"else{i} " * 60 for i in range(8)})
    client = open_review(corpus)
    page = client.get("/cluster?key=t0").text
    assert "Does a template hold it together?" in page
    (inspection,) = (held for cluster, held in corpus.inspect_clusters() if "t0" in cluster.keys)
    page = client.get("/cluster?key=t0&inspect=1").text
    assert ("A template holds" in page) == inspection.held_by_template


def test_tracked_clusters_are_read_when_they_change(corpus: ts.Corpus, open_review: Open) -> None:
    base = " ".join(WORDS)
    corpus.add_many({"a": base, "b": f"{base} end"})
    corpus.track()
    corpus.update_clusters()
    reviewed = CorpusDocuments(corpus)
    client = open_review(reviewed)
    assert "1 cluster." in client.get("/clusters").text
    corpus.add("c", f"{base} begin")
    corpus.update_clusters()
    page = client.get("/cluster?key=c").text
    assert "Cluster of 3 documents" in page
    assert "joined" in page
    _press(client, page, 'Different: [^"]* c$')
    corpus.update_clusters()
    assert "Cluster of 2 documents" in client.get("/cluster?key=a").text


def test_stored_clusters_say_why_counts_differ(db: ts.Database, open_review: Open) -> None:
    corpus = db.create_corpus("chains", threshold=0.6, recall=1.0, shingle="word:1")
    texts = [WORDS[i : i + 20] for i in (0, 4, 8, 12)]
    corpus.add_many({f"k{i}": " ".join(words) for i, words in enumerate(texts)})
    corpus.track()
    corpus.update_clusters()
    page = open_review(corpus).get("/clusters").text
    assert "2 clusters. The corpus is tracked" in page
    assert "The overview counts 1, because there each chain of pairs makes a cluster" in page


def test_a_reader_sees_no_word_of_buttons(corpus: ts.Corpus, open_review: Open) -> None:
    base = " ".join(WORDS)
    corpus.add_many({"a": base, "b": f"{base} end"})
    for is_read_only in (False, True):
        page = open_review(corpus, read_only=is_read_only).get("/cluster?key=a").text
        assert ("<em>Different</em> cuts" in page) == ("<button" in page) == (not is_read_only)
        assert ("Read only" in page) == is_read_only


def _press(client: TestClient, page: str, label: str) -> str:
    """Press the first button with this label, and return the page that follows."""
    for form in re.findall('<form class="row".*?</form>', page, re.DOTALL):
        for value, name in re.findall('value="([a-z]*)"[^>]*aria-label="([^"]*)"', form):
            if re.search(label, name):
                (action,) = re.findall('action="([^"]*)"', form)
                (seen,) = re.findall('name="seen" value="([^"]*)"', form)
                data = {"verdict": value, "seen": unescape(seen)}
                after = client.post(unescape(action), data=data)
                assert after.status_code == 303, after.text
                return client.get(after.headers["location"]).text
    raise AssertionError(f"no button {label}: {page}")
