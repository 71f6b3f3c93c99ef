"""The page of textsim dedupe: its numbers, its bounds, and texts that must not act on it."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.commands import Textsim
from tests.support.html import Html
from tests.support.records import as_jsonl
from tests.support.review import HOSTILE
from textsim_db.cluster.keep_rule import Preference
from textsim_db.dedupe.removal_summary import Removal
from textsim_db.dedupe.removals import Deduplication, Rule
from textsim_db.review.report_pages import (
    PAGE_BYTES,
    SHOWN_CLUSTERS,
    SHOWN_MEMBERS,
    SHOWN_PAIRS,
    RemovalPage,
)
from textsim_db.settings.corpus_settings import CorpusSettings

ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "table", "tbody", "tr", "th"),
    *("td", "bdi", "svg", "rect", "a", "section", "article", "details", "summary", "div", "p"),
    *("b", "i", "del", "ins", "ul", "li", "main", "h3", "span"),
}
WORDS = " ".join(f"word{i}" for i in range(30))


def read(html: str) -> Html:
    page = Html(html)
    assert page.unclosed == []
    assert set(page.tags) <= ALLOWED
    return page


def numbers(page: Html) -> dict[str, int]:
    rows = (row for row in page.rows if row[1][:1].isdigit() and "." not in row[1])
    return {name: int(n.replace(",", "")) for name, n, *_ in rows}


def test_the_numbers_are_those_of_the_other_report(textsim: Textsim, rng: random.Random) -> None:
    seed = rng.randrange(10**6)
    texts = [text for _, text in documents(1000, words=40, planted=0.4, seed=seed)]
    Path("in.jsonl").write_bytes(as_jsonl([{"id": i, "text": t} for i, t in enumerate(texts)]))
    options = ("--threshold", "0.5", "--linkage", "single")
    textsim("dedupe", "in.jsonl", "--report", "r.jsonl", *options)
    clusters = [json.loads(line) for line in Path("r.jsonl").read_text().splitlines()]
    removed = [record["similarity"] for cluster in clusters for record in cluster["removed"]]
    result = textsim("dedupe", "in.jsonl", "-o", "out.jsonl", "--report", "r.html", *options)
    page = read(Path("r.html").read_text("utf-8"))
    shown = numbers(page)
    assert f"1,000 documents: {shown['kept']:,} kept, {len(removed):,} removed" in result.stderr
    assert (shown["records"], shown["removed"]) == (1000, len(removed))
    assert shown["clusters"] == len(clusters)
    for low in range(10):
        pairs = sum(low / 10 <= similarity < (low + 1) / 10 for similarity in removed)
        assert shown.get(f"0.{low} to below {(low + 1) / 10:g}", 0) == pairs
    assert shown["1: the same shingles"] == removed.count(1.0)
    assert ["linkage", "single"] in page.rows
    largest = max(clusters, key=lambda cluster: len(cluster["removed"]))
    assert f"key {largest['kept']['key']}: {len(largest['removed'])} records removed" in page.text


def test_the_same_run_writes_the_same_page(textsim: Textsim) -> None:
    records = [{"id": i, "text": f"{WORDS} {'x ' * (i % 5)}"} for i in range(50)]
    Path("in.jsonl").write_bytes(as_jsonl(records))
    pages = []
    for kind in ("csv", "jsonl"):  # a conversion surveys the records while they are read
        textsim(
            *["dedupe", "in.jsonl", "--report", "r.html", "--threshold", "0.5", "-o"], f"out.{kind}"
        )
        pages.append(Path("r.html").read_bytes())
    assert pages[0] == pages[1]


def test_hostile_texts_and_keys_do_nothing(textsim: Textsim) -> None:
    records = [
        {"id": text, "text": f"{text} {' '.join(f'{place}x{i}' for i in range(30))} {copy}{text}"}
        for place, text in enumerate(HOSTILE)
        for copy in ("", "a ")
    ]
    Path("in.jsonl").write_bytes(as_jsonl([*records, {"id": "<i>", "text": "<script>\0"}]))
    textsim("dedupe", "in.jsonl", "--report", "r.html", "--threshold", "0.4", status=1)
    html = Path("r.html").read_text("utf-8")
    page = read(html)
    names = {name for element in page.elements for name in element.attributes}
    assert not [name for name in names if name.startswith("on") or name in ("src", "action")]
    assert not [link for link in page.values("href") if not link.startswith("#")]
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", html)
    assert r"\u202egnp.exe\u202d" in page.text
    assert "<script>alert(1)</script>" in page.text
    assert "default-src 'none'" in html
    assert not re.search(r"https?:|url\(|@import", re.sub("<body.*", "", html, flags=re.S))
    assert "cannot be compared" in page.text


def test_documents_of_a_corpus_stand(textsim: Textsim, db: ts.Database) -> None:
    corpus = db.create_corpus("known", threshold=0.5)
    corpus.add_many({"<old>": f"{WORDS} Don't, he said."})
    Path("in.jsonl").write_bytes(as_jsonl([{"id": "n", "text": f"{WORDS} don't she said"}]))
    arguments = ("--against", "known", "--add", "-o", "out.jsonl", "--report", "r.html")
    for _ in range(2):
        told = textsim("dedupe", "in.jsonl", *arguments).stderr
        html = Path("r.html").read_text("utf-8")
        assert "document <old> of the corpus known" in read(html).text
        if "earlier run" not in told:
            assert '"n" has "she" for "he" (kept: "<old>" of corpus "known")' in told
        assert "don t </span><del>he</del>" in html
        assert "don t </span><ins>she</ins>" in html
        shown = numbers(read(html))
        assert (shown["removed"], shown["removed, because a corpus has a match"]) == (0, 1)


def test_the_reports_name_what_stays_beside_the_kept_record(textsim: Textsim) -> None:
    records = [{"id": f"<{i}>", "text": f"{WORDS} {'x ' * i}"} for i in range(20)]
    Path("in.jsonl").write_bytes(as_jsonl(records))
    options = ("--threshold", "0.5", "--shingle", "char:3", "--keep-up-to", "14")
    for report in ("r.html", "r.jsonl"):
        textsim("dedupe", "in.jsonl", "--report", report, *options)
    (cluster,) = map(json.loads, Path("r.jsonl").read_text().splitlines())
    assert [len(cluster[name]) for name in ("also_kept", "removed")] == [13, 6]
    text = read(Path("r.html").read_text("utf-8")).text
    for record in cluster["also_kept"][:SHOWN_MEMBERS]:
        assert f"record {record['record']}, key {record['key']} (similarity 0." in text
    assert "and 3 more records" in text


def test_the_page_says_what_was_compared(textsim: Textsim, db: ts.Database) -> None:
    Path("in.jsonl").write_bytes(as_jsonl([{"id": 1, "text": WORDS, "x": "a", "<y>": "b"}]))
    Path("words").mkdir()
    Path("words/stop.txt").write_text("\n".join(f"the{chr(97 + i)}" for i in range(25)))
    Path("words/guard.txt").write_text("<red>\nblue\n")
    options = [
        *("--guard", "numbers,words", "--guard-words", "words/guard.txt", "--shingle", "char:5")
    ]
    options += ["--stop-words", "words/stop.txt", "--scope", "x", "--scope", "<y>", "--recall", "1"]
    textsim("dedupe", "in.jsonl", "--report", "r.html", *options)
    rows = [row[:2] for row in read(Path("r.html").read_text("utf-8")).rows]
    for expected in [
        ["threshold", "0.8"],
        ["shingle", "char:5"],
        ["recall", "1"],
        ["linkage", "kept"],
        ["guards", "numbers, words"],
        ["stop words", ", ".join(f"the{chr(97 + i)}" for i in range(20)) + " and 5 more"],
        ["scope", "x, <y>"],
    ]:
        assert expected in rows, rows
    assert any(name == "guard words" and "blue" in value for name, value in rows)
    db.create_corpus("<old>", threshold=0.6, guards=["negations"])
    textsim("dedupe", "in.jsonl", "--report", "r.html", "--against", "<old>")
    rows = [row[:2] for row in read(Path("r.html").read_text("utf-8")).rows]
    for expected in [["threshold", "0.6"], ["guards", "negations"], ["against", "<old>"]]:
        assert expected in rows, rows
    assert not {"scope", "stop words", "guard words"} & {name for name, _ in rows}


def made_page(removals: list[Removal], texts: list[str]) -> str:
    result = Deduplication(len(texts), removals, [], 0)
    rule = Rule(Preference("first"), CorpusSettings().complete())
    return RemovalPage(result, rule).html("in.jsonl", texts, [None] * len(texts))


@pytest.mark.more
def test_a_page_of_20_000_removals_is_small_and_says_what_it_leaves_out(rng: random.Random) -> None:
    kept = 4_000
    texts = [f"{WORDS} {i}" for i in range(kept + 20_000)]
    removals = [
        Removal(kept + i, rng.randrange(kept) if i > 500 else 7, rng.choice([0.71, 0.85, 0.999, 1]))
        for i in range(20_000)
    ]
    html = made_page(removals, texts)
    page = read(html)
    assert len(html) < 2_000_000
    assert numbers(page)["removed"] == 20_000
    clusters = len({removal.kept for removal in removals})
    assert numbers(page)["clusters"] == clusters
    assert f"{clusters - SHOWN_CLUSTERS:,} smaller clusters left out" in page.text
    assert page.tags.count("details") == SHOWN_CLUSTERS
    pairs = sum(removal.similarity == 0.71 for removal in removals)
    assert f"{pairs:,} pairs, of which {SHOWN_PAIRS} are shown" in page.text
    largest = sum(removal.kept == 7 for removal in removals)
    assert f"record 8: {largest} records removed" in page.text
    assert f"{largest - SHOWN_MEMBERS} more similar records left out" in page.text


@pytest.mark.more
@pytest.mark.parametrize("text", ["\u202e", "\u202e ", '"', "<>&"])
def test_texts_that_grow_when_they_are_escaped_do_not_pass_the_bound(text: str) -> None:
    texts = [f"{text * 20_000}{i}" for i in range(2 * SHOWN_CLUSTERS)]
    removals = [Removal(2 * i + 1, 2 * i, 0.9) for i in range(SHOWN_CLUSTERS)]
    html = made_page(removals, texts)
    assert len(html) < 1.2 * PAGE_BYTES
    assert "Only the first 10,000 characters are compared here" in html


def test_an_empty_result_says_so() -> None:
    html = made_page([], ["a", "b"])
    assert "No records removed." in html
    read(html)
