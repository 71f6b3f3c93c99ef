"""Reviews of an attached table, and of the report of a finished dedupe."""

from __future__ import annotations

import re
import socket
import urllib.error
import urllib.request
from html import unescape
from pathlib import Path

import psycopg
import pytest

import textsim_db as ts
from tests.review.conftest import Open
from tests.support.commands import NEWS, Textsim
from tests.support.review import seen_of, serving, words_of
from tests.support.waiting import PATIENCE_SECONDS, wait_for
from textsim_db.errors import InputError
from textsim_db.files.file_kinds import FileFormat, Quote
from textsim_db.files.record_files import RecordColumns
from textsim_db.files.several_files import RecordFiles
from textsim_db.review.corpus_documents import CorpusDocuments, attached_source
from textsim_db.review.report_documents import ReportDocuments

LINES = [f"Line {i}: Everything is FINE here, said number {i}." for i in range(8)]


@pytest.fixture
def articles(db: ts.Database, connection: psycopg.Connection) -> ts.Corpus:
    """A corpus with two attached tables, and a document of a client."""
    corpus = db.create_corpus("articles", threshold=0.7, shingle="word:2")
    for table in ("article", "page"):
        connection.execute(f"CREATE TABLE {table} (id text PRIMARY KEY, body text)".encode())
        for i in range(2):
            text = "\n".join([*LINES, f"END {i}."])
            insert = f"INSERT INTO {table} VALUES (%s, %s)".encode()
            connection.execute(insert, [f"{table}{i}", text])
        connection.commit()
        corpus.attach(table, "id", "body")
    corpus.add("own", " ".join([*LINES, "END 3"]))
    return corpus


def test_texts_of_attached_tables_are_the_originals(articles: ts.Corpus, open_review: Open) -> None:
    client = open_review(articles)
    page = client.get("/pair?a=article0&b=own").text
    assert "Line 0: Everything is FINE here, said number 0.\nLine 1" in page
    assert page.count("as it is indexed") == 1
    assert "<del>0.</del>" in page
    assert "<ins>3</ins>" in page
    assert "differ only in numbers" in page


def test_a_source_shows_its_pairs(articles: ts.Corpus, db: ts.Database, open_review: Open) -> None:
    source = attached_source(db.sources(), "article", None)
    reviewed = CorpusDocuments(articles, None, source)
    assert [pair[:2] for pair in reviewed.pairs()] == [("article0", "article1")]
    client = open_review(CorpusDocuments(articles, None, source))
    page = client.get("/").text
    assert "<dd>2</dd>" in page
    assert "article in articles" in page
    assert "FROM textsim.duplicates('articles', threshold => 0.80," in str(reviewed.commands(0.8))
    with pytest.raises(ts.ConfigurationError, match="attached tables: article, page"):
        attached_source(db.sources(), "articles", None)
    with pytest.raises(ts.ConfigurationError, match='not attached to the corpus "other"'):
        attached_source(db.sources(), "article", "other")


def test_siblings_have_a_list_of_their_own_until_they_are_judged(
    db: ts.Database, connection: psycopg.Connection, open_review: Open
) -> None:
    corpus = db.create_corpus("bills", threshold=0.3, recall=1, guards="numbers")
    text = "dear customer your order {} of may has left our warehouse and arrives {}"
    corpus.add_many({f"bill{i}": text.format(i // 2, "soon" if i % 2 else "now") for i in range(8)})
    reviewed = CorpusDocuments(corpus)
    pairs = {(f"bill{i}", f"bill{i + 1}") for i in range(0, 8, 2)}
    assert {pair[:2] for pair in reviewed.pairs()} == pairs
    random = reviewed.random_matches()
    assert random is not None
    assert {pair[:2] for pair in random.pairs} == pairs
    client = open_review(reviewed)
    assert "siblings have a list of their own" in words_of(client.get("/").text)
    siblings = {pair[:2] for pair in corpus.pairs()} - pairs
    assert {pair[:2] for pair in reviewed.siblings()} == siblings
    page = client.get("/pairs?state=siblings").text
    assert page.count("numbers differ") == len(siblings) > 4
    assert f"{len(siblings)} pairs of siblings, not judged" in words_of(page)
    assert "numbers differ" not in client.get("/pairs").text
    page = words_of(client.get("/pair?a=bill0&b=bill2&state=siblings").text)
    assert 'The guard numbers keeps them apart: "0" in the first, "1" in the second.' in page
    seen = seen_of(client.get("/pair?a=bill0&b=bill2&state=siblings").text)
    judged = {"verdict": "same", "seen": seen}
    sent = client.post("/judge?a=bill0&b=bill2&state=siblings", data=judged)
    assert "state=siblings" in sent.headers["location"]
    left = client.get("/pairs?state=siblings").text.count("numbers differ")
    assert left == len(siblings) - 1
    joined = ("bill0", "bill1", "bill2", "bill3")
    clusters = {cluster.keys for cluster in corpus.clusters(judgements=True)}
    assert clusters == {joined, ("bill4", "bill5"), ("bill6", "bill7")}
    corpus.track()
    corpus.update_clusters()
    # Linkage kept: bill3 is a match of bill2, which is not kept.
    assert {each.key for each in corpus.members("bill0")} == {*joined} - {"bill3"}


def test_a_corpus_without_guards_has_no_siblings(articles: ts.Corpus, open_review: Open) -> None:
    assert "siblings" not in open_review(articles).get("/pairs").text.lower()


def test_without_the_right_to_read_the_table_the_words_are_shown(
    articles: ts.Corpus, connection: psycopg.Connection, open_review: Open
) -> None:
    connection.execute("ALTER TABLE article RENAME COLUMN body TO words")
    connection.commit()
    page = open_review(articles).get("/pair?a=article0&b=page0").text
    assert page.count("as it is indexed") == 1


@pytest.fixture
def finished(tmp_path: Path, textsim: Textsim) -> tuple[str, list[str]]:
    """The report and the inputs of a finished dedupe."""
    folder, report = tmp_path / "records", tmp_path / "report.jsonl"
    folder.mkdir()
    words = " ".join(f"Word{i}" for i in range(30))
    texts = {"a": words, "b": f"{words} Two", "c": "Else.", "d": f"{words} Three"}
    for number, (key, text) in enumerate(texts.items()):
        (folder / f"{number}.csv").write_text(f'id,text\n{key},"{text}\n')
    arguments = ("--report", str(report), "--threshold", "0.7", "--quote", "none")
    textsim("dedupe", str(folder), *arguments)
    return str(report), [str(file) for file in sorted(folder.iterdir())]


def test_rows_are_found_by_a_key_of_several_columns(
    db: ts.Database, connection: psycopg.Connection, open_review: Open
) -> None:
    connection.execute("CREATE TABLE post (site text, id int, body text, PRIMARY KEY (id, site))")
    for site in ("and/or", "b"):
        text = "\n".join([*LINES, f"END {site}"])
        connection.execute("INSERT INTO post VALUES (%s, 1, %s)", [site, text])
    connection.commit()
    corpus = db.create_corpus("posts", threshold=0.7, shingle="word:2")
    corpus.attach("post", key_columns=["site", "id"], text="body")
    reviewed = CorpusDocuments(corpus, None, attached_source(db.sources(), "post", None))
    client = open_review(reviewed)
    (link,) = re.findall(r'href="(pair\?[^"]*)"', client.get("/pairs").text)[:1]
    page = client.get(unescape(link)).text
    assert "and~1or/1" in page
    assert "Line 0: Everything is FINE here, said number 0.\nLine 1" in page
    assert "as it is indexed" not in page


def test_a_finished_dedupe_is_reviewed_and_obeys_the_judgements(
    finished: tuple[str, list[str]], open_review: Open, textsim: Textsim, tmp_path: Path
) -> None:
    report, records = finished
    judged = str(tmp_path / "judged.jsonl")
    with (
        RecordFiles(records, RecordColumns("text"), FileFormat(quote=Quote.NONE)) as file,
        ReportDocuments(report, file, judged) as reviewed,
    ):
        client = open_review(reviewed)
        assert "<dd>4</dd>" in client.get("/").text
        assert "Cluster of 3 documents" in client.get("/cluster?key=d").text
        assert "<ins>Two</ins>" in client.get("/pair?a=a&b=b").text
        sent = client.post("/judge?a=a&b=b", data={"verdict": "different", "seen": ""})
        assert sent.status_code == 303
        assert client.post("/judge?a=b&b=a", data={"verdict": "same"}).status_code == 409
        (command,) = reviewed.commands(0.7)
    assert f"--judgements {judged}" in command.command
    words = command.command.split()[1:-1]
    result = textsim(*words, str(tmp_path / "unique.jsonl"))
    assert "3 kept, 1 removed" in result.stderr
    with (
        RecordFiles(records, RecordColumns("text"), FileFormat(quote=Quote.NONE)) as file,
        ReportDocuments(report, file, judged) as reviewed,
    ):
        client = open_review(reviewed)
        assert client.get("/judgements.csv").text.count('"a","b","different",') == 1


def test_a_kept_record_is_the_first(open_review: Open, textsim: Textsim, tmp_path: Path) -> None:
    words = " ".join(f"word{i}" for i in range(30))
    records, report = tmp_path / "records.csv", str(tmp_path / "report.jsonl")
    records.write_text(f"id,text\na,{words}\nb,{words} more\nc,{words} today and more\n")
    textsim("dedupe", str(records), "--report", report, "--threshold", "0.7", "--keep", "longest")
    with (
        RecordFiles([str(records)], RecordColumns("text")) as file,
        ReportDocuments(report, file, str(tmp_path / "judged.jsonl")) as reviewed,
    ):
        client = open_review(reviewed)
        assert "Representative: c." in words_of(client.get("/cluster?key=a").text)
        assert "key=c&" in unescape(client.get("/clusters").text)
        # A cluster that lost its kept record has the first key, as textsim clusters has.
        for key in ("a", "b"):
            client.post(f"/judge?a={key}&b=c", data={"verdict": "different", "seen": ""})
        client.post("/judge?a=a&b=b", data={"verdict": "same", "seen": ""})
        assert "Representative: a." in words_of(client.get("/cluster?key=b").text)


def test_other_reports_are_refused(finished: tuple[str, list[str]], tmp_path: Path) -> None:
    report, _ = finished
    other = tmp_path / "other.jsonl"
    for contents in ('{"id": "x", "text": "other"}\n' * 4, '{"id": "a", "text": "a"}'):
        other.write_text(contents)
        with (
            RecordFiles([str(other)], RecordColumns("text")) as file,
            pytest.raises(InputError, match="is no report of"),
        ):
            ReportDocuments(report, file, str(tmp_path / "judged.jsonl"))
    other.write_text("{}")
    with (
        RecordFiles([str(other)], RecordColumns("text")) as file,
        pytest.raises(InputError, match="line 1 is no cluster"),
    ):
        ReportDocuments(str(other), file, str(tmp_path / "judged.jsonl"))


def test_options_that_exclude_each_other_are_named(textsim: Textsim) -> None:
    for arguments, message in (
        ([], "name a corpus"),
        (["--report", "r.jsonl"], "need each other"),
        (["news", "--report", "r.jsonl", "--input", "i.jsonl"], "neither a corpus"),
        (["news", "--judgements", "j.jsonl"], "it needs --report"),
    ):
        assert message in " ".join(textsim("review", *arguments, status=2).stderr.split())


@pytest.fixture
def news_corpus(db: ts.Database) -> ts.Corpus:
    corpus = db.create_corpus("news_corpus", threshold=0.6)
    corpus.add_many(NEWS)
    return corpus


@pytest.mark.more
def test_it_serves_until_an_interrupt_comes(news_corpus: ts.Corpus, database_url: str) -> None:
    with serving(database_url, "news_corpus") as address:
        found = re.fullmatch(r"(http://127\.0\.0\.1:\d+)/[\w-]{43}/", address)
        assert found

        def page(address: str) -> bytes:
            with urllib.request.urlopen(address, timeout=PATIENCE_SECONDS) as answer:
                return bytes(answer.read())

        wait_for(lambda: b"<table" in page(f"{address}pairs"))
        assert page(f"{address}pairs").count(b'href="pair?') == 3
        with pytest.raises(urllib.error.HTTPError, match="403"):
            page(f"{found[1]}/pairs")


def test_a_port_in_use_is_named(news_corpus: ts.Corpus, textsim: Textsim) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = textsim("review", "news_corpus", "--no-browser", "--port", port, status=2)
    assert "in use" in refused.stderr
    assert port in refused.stderr
    assert "out of range" in textsim("review", "news_corpus", "--port", "65536", status=2).stderr
    assert "does not exist" in textsim("review", "new", "--no-browser", status=2).stderr


def test_without_doubtful_pairs_there_is_no_page(news_corpus: ts.Corpus, textsim: Textsim) -> None:
    refused = textsim("review", "news_corpus", "--doubtful", "--no-browser", status=2)
    assert "the corpus has no unique_from" in refused.stderr
