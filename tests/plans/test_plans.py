"""Look-ups read few rows and pages of the index on (bucket, document_id)."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

import textsim_db as ts
from tests.support.servers import Server, database_of
from textsim_db.db.stored_corpus import load
from textsim_db.read import integrity_statements, statements
from textsim_db.sketch import sketch_texts
from textsim_db.sketch.sketch_texts import sketch
from textsim_db.text.shingles import shingles

pytestmark = pytest.mark.more

DOCUMENTS = 20_000
FAMILY = 5
Node = dict[str, Any]


def make_texts(rng: random.Random) -> Iterator[tuple[str, str]]:
    """Yield families of near-copies; few words are frequent and many are rare, as in natural texts."""
    vocabulary = [f"w{i}" for i in range(30_000)]
    weights = [1 / (i + 10) for i in range(len(vocabulary))]
    for i in range(DOCUMENTS // FAMILY):
        words = rng.choices(vocabulary, weights, k=40)
        for j in range(FAMILY):
            words[rng.randrange(40)] = f"x{j}"
            yield f"{i}-{j}", " ".join(words)


def nodes(plan: Node) -> Iterator[Node]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def explain(url: str, statement: str, parameters: list[Any]) -> tuple[Node, str]:
    """Run a prepared statement as the package does: the planner does not see the values."""
    with psycopg.connect(url) as connection:
        connection.execute("SET plan_cache_mode = force_generic_plan")
        text = statement
        for number in range(1, len(parameters) + 1):
            text = text.replace("%s", f"${number}", 1)
        connection.execute(f"PREPARE look_up AS {text}".encode())
        arguments = ", ".join(
            "'{" + ",".join(map(str, p)) + "}'" if isinstance(p, list) else f"'{p}'"
            for p in parameters
        )
        row = connection.execute(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE look_up ({arguments})".encode()
        ).fetchone()
    assert row is not None
    plan = row[0][0]["Plan"]
    return plan, json.dumps(plan, indent=1)


def explain_statement(connection: psycopg.Connection[Any], statement: str) -> tuple[Node, str]:
    """Return the plan that read the fewest pages in three runs.

    The statements of a function read the catalog, too, and do it anew when other sessions change it.
    """
    plans: list[Node] = []
    for _ in range(3):
        row = connection.execute(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}".encode()
        ).fetchone()
        assert row is not None
        plans.append(row[0][0]["Plan"])
    plan = min(plans, key=pages)
    return plan, json.dumps(plan, indent=1)


def rows_read(node: Node) -> float:
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return float((node["Actual Rows"] + removed) * node["Actual Loops"])


def pages(plan: Node) -> int:
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def scans(plan: Node) -> dict[str, float]:
    """Return the rows read by each kind of scan of a table, by table, kind and index."""
    rows_by_scan: dict[str, float] = {}
    for node in nodes(plan):
        if "Relation Name" in node or "Index Name" in node:
            table = str(node.get("Relation Name", "")).partition("_")[0]
            index = str(node.get("Index Name", "")).rpartition("_")[2]
            name = f"{node['Node Type']} {table} {index}".strip()
            rows_by_scan[name] = rows_by_scan.get(name, 0) + rows_read(node)
    return rows_by_scan


@pytest.fixture(scope="module")
def texts(seed: int) -> dict[str, str]:
    return dict(make_texts(random.Random(seed)))


@pytest.fixture(scope="module")
def loaded(server: Server, shared_db: ts.Database, texts: dict[str, str]) -> str:
    """The name of a database with a corpus of the texts; nobody is connected to the database."""
    shared_db.create_corpus("plans").add_many(texts.items())
    shared_db.create_corpus("exact", recall=1).add_many(texts.items())
    with psycopg.connect(shared_db.url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
    shared_db.close()
    return database_of(shared_db.url)


@pytest.fixture
def loaded_db(server: Server, loaded: str) -> Iterator[ts.Database]:
    with server.clone(loaded) as url, ts.connect(url) as db:
        yield db


@pytest.mark.parametrize("name", ["plans", "exact"])
def test_lookups_use_the_index_and_read_few_rows_and_pages(
    loaded_db: ts.Database, texts: dict[str, str], rng: random.Random, name: str
) -> None:
    corpus, stored = loaded_db.corpus(name), load(loaded_db.engine, name)
    is_exact = corpus.config.is_exact
    assert (len(corpus), is_exact) == (DOCUMENTS, name == "exact")
    keys = rng.sample(sorted(texts), 200)
    chosen = [texts[key] for key in keys]
    one, many = (
        (statements.EXACT_CANDIDATES_OF_ONE, statements.EXACT_CANDIDATES_OF_MANY)
        if is_exact
        else (statements.CANDIDATES_OF_ONE, statements.CANDIDATES_OF_MANY)
    )
    check_one(loaded_db.url, corpus, stored.statement(one), chosen[:20])
    check_many(loaded_db.url, corpus, stored.statement(many), chosen)
    plan, shown = explain(loaded_db.url, stored.statement(statements.DOCUMENT_OF_KEY), [keys[0]])
    assert set(scans(plan)) == {"Index Scan document key"}, shown
    assert pages(plan) <= 10, f"{pages(plan)} pages read, at most 10: {shown}"
    with psycopg.connect(loaded_db.url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE mine (key text PRIMARY KEY, owner int, padding text);"
            "INSERT INTO mine SELECT key, length(key) % 7, repeat('x', 100) FROM textsim.document_1"
        )
        connection.execute("VACUUM ANALYZE mine")
        row = connection.execute(
            "SELECT relpages FROM pg_class WHERE oid = 'textsim.band_1'::regclass"
        ).fetchone()
        assert row is not None
        assert row[0] > 1000
        for join, most in JOINS.items():
            filled = join.format(text=sql.quote(texts[keys[0]]), key=sql.quote(keys[0]))
            if is_exact:
                filled = filled.replace("'plans'", "'exact'").replace("0.5", "0.8")
            # Most shingles of a text are looked up among the common ones, each in three pages.
            check_join(connection, filled, most + 300 * is_exact)


def test_passages_use_the_index_of_the_fingerprints(
    loaded_db: ts.Database, texts: dict[str, str], rng: random.Random
) -> None:
    corpus = loaded_db.create_corpus("quoted", passages=13)
    corpus.add_many(texts.items())
    with psycopg.connect(loaded_db.url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
    statement = load(loaded_db.engine, "quoted").statement(statements.PASSAGE_CANDIDATES_OF_ONE)
    for key in rng.sample(sorted(texts), 20):
        fingerprints = sketch([texts[key].encode()], corpus.config).fingerprints
        assert fingerprints is not None
        plan, shown = explain(loaded_db.url, statement, [fingerprints.values.tolist()])
        assert set(scans(plan)) == {
            "Index Only Scan passage fingerprint",
            "Index Scan document id",
        }, shown
        assert pages(plan) <= 100, f"{pages(plan)} pages read, at most 100: {shown}"
        assert key in {passage.key for passage in corpus.passages(texts[key])}


def test_check_joins_documents_and_log_by_hash_or_merge(db: ts.Database) -> None:
    db.create_corpus("c")
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute(
            "SELECT textsim.add('c', i::text, 'text ' || i) FROM generate_series(1, 2000) i"
        )
        connection.execute("DELETE FROM textsim.pending WHERE keys = '{7}'")
        connection.execute("VACUUM ANALYZE")
    plan, shown = explain(
        db.url, load(db.engine, "c").statement(integrity_statements.FORGOTTEN_DOCUMENTS), [1]
    )
    assert plan["Actual Rows"] == 1, shown
    joins = {node["Node Type"] for node in nodes(plan) if "Anti" in node.get("Join Type", "")}
    assert joins <= {"Hash Join", "Merge Join"}, shown
    assert joins, shown


JOINS = {
    "textsim.candidates('plans', {text}) c ON c.key = m.key": 200,
    "textsim.matches('plans', {text}, 0.5) c ON c.key = m.key": 300,
    "textsim.neighbours('plans', {key}, 0.5) c ON c.key = m.key": 300,
}


@pytest.mark.parametrize(
    ("key_type", "key"), [("int", "m.key::int"), ("bigint", "m.key::bigint"), ("text", "m.key")]
)
def test_matches_are_joined_to_a_large_table_by_its_primary_key(
    db: ts.Database, key_type: str, key: str
) -> None:
    """The joins of the pages: the key of the match is cast, so that the column stays bare."""
    corpus = db.create_corpus("posts")
    text = (
        "the council voted on monday to rebuild the old stone bridge over the river before winter"
    )
    corpus.add_many((str(i), text) for i in range(0, 200_000, 10_000))
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute(
            f"CREATE TABLE post (id {key_type} PRIMARY KEY, tenant int, body text);"
            f"INSERT INTO post SELECT i::{key_type}, i / 10000, repeat('x', 100) "
            "FROM generate_series(0, 199999) i".encode()
        )
        connection.execute("VACUUM ANALYZE post")
        statement = (
            f"SELECT p.*, m.similarity FROM textsim.matches('posts', '{text}') m "
            f"JOIN post p ON p.id = {key} WHERE p.tenant = 9"
        )
        plan, shown = explain_statement(connection, statement)
    assert plan["Actual Rows"] == 1, shown
    assert set(scans(plan)) == {"Index Scan post pkey"}, shown
    # 20 documents and 20 rows of a table of 4,000 pages, each by three levels of an index
    assert pages(plan) <= 400, f"{pages(plan)} pages read, at most 400: {shown}"


def check_join(connection: psycopg.Connection[Any], join: str, most: int) -> None:
    """Assert that a join with a function reads few pages.

    The plan does not show the statements of a function, but counts their pages: a scan reads thousands.
    """
    text = f"SELECT m.*, c.* FROM mine m JOIN {join} WHERE m.owner >= 0"
    plan, shown = explain_statement(connection, text)
    assert plan["Actual Rows"] >= 1, shown
    assert "Index Scan mine pkey" in scans(plan), shown
    assert pages(plan) <= most, f"{pages(plan)} pages read, at most {most}: {shown}"


def check_one(url: str, corpus: ts.Corpus, statement: str, texts: list[str]) -> None:
    for text in texts:
        buckets = sketch_texts.buckets(text, corpus.config).tolist()
        bands = len(buckets)
        parameters: list[Any] = [buckets]
        if corpus.config.is_exact:
            parameters += [1, size_of(corpus, text), corpus.config.threshold]
        plan, shown = explain(url, statement, parameters)
        read = scans(plan)
        print(f"{read} rows and {pages(plan)} pages read for {plan['Actual Rows']} documents")
        assert plan["Actual Rows"] >= 1, shown
        assert set(read) <= {
            "Index Only Scan band bucket",
            "Index Scan band bucket",
            "Index Scan document id",
        }, shown
        assert any(name.endswith("band bucket") for name in read), shown
        assert sum(read.values()) <= 10 * bands, f"{read} rows read by {bands} probes: {shown}"
        # A probe reads three levels of the index, and a document two pages.
        limit = 4 * bands + 8 * plan["Actual Rows"] + 20
        assert pages(plan) <= limit, f"{pages(plan)} pages read, at most {limit}: {shown}"


def size_of(corpus: ts.Corpus, text: str) -> int:
    return len(shingles(text, str(corpus.config.shingle)))


def check_many(url: str, corpus: ts.Corpus, statement: str, texts: list[str]) -> None:
    parameters: list[Any] = [[], []]
    for number, text in enumerate(texts):
        buckets = sketch_texts.buckets(text, corpus.config).tolist()
        parameters[0] += [number] * len(buckets)
        parameters[1] += buckets
    if corpus.config.is_exact:
        sizes = [size_of(corpus, text) for text in texts]
        parameters += [[1] * len(texts), sizes, corpus.config.threshold]
    plan, shown = explain(url, statement, parameters)
    read = scans(plan)
    assert not any(name.startswith("Seq Scan") for name in read), shown
    assert any(name.endswith("band bucket") for name in read), shown
    probes = len(parameters[1])
    assert sum(read.values()) <= 20 * probes, f"{read} rows read by {probes} probes: {shown}"
    limit = 6 * probes + 8 * plan["Actual Rows"]
    assert pages(plan) <= limit, f"{pages(plan)} pages read, at most {limit}: {shown}"


def test_a_join_with_members_looks_up_its_keys(loaded_db: ts.Database) -> None:
    corpus = loaded_db.corpus("plans")
    corpus.track()
    corpus.update_clusters()
    with psycopg.connect(loaded_db.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE article (id int PRIMARY KEY, slug text)")
        connection.execute(
            "INSERT INTO article SELECT row_number() OVER (), key FROM textsim.document_1"
        )
        connection.execute("VACUUM ANALYZE")
        join = (
            "SELECT a.id, m.* FROM article a "
            "CROSS JOIN LATERAL textsim.members('plans', a.slug) m WHERE a.id < 6 AND m.key = a.slug"
        )
        plan, shown = explain_statement(connection, join)
        key = next(iter(corpus.members())).key
        statement = f"SELECT * FROM textsim.members('plans', '{key}')"
        of_one, shown_of_one = explain_statement(connection, statement)
        of_all, _ = explain_statement(connection, "SELECT * FROM textsim.members('plans')")
    assert max(map(rows_read, nodes(plan))) <= 30, shown
    assert pages(plan) < 5 * 150, shown  # 21 to read eight relations, and 43 to 80 to plan it
    # The pages are those of the function, too.
    assert pages(of_one) < 200 < pages(of_all), shown_of_one
