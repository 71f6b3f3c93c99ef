"""A database with everything that a dump must keep, and what must be equal after a restore."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql

from tests.support.catalog import CATALOG, assert_same_schemas, fetch_sorted
from tests.support.roles import FOX, RIGHTS, TEXTS, Stage
from tests.support.servers import Server, programs_of
from textsim_db.results import Member

if TYPE_CHECKING:  # released versions run this module, too
    from textsim_db.settings.named_values import ModeName

UTF8 = "ENCODING 'UTF8' TEMPLATE template0"
TABLES = (
    "CREATE TABLE article (id integer PRIMARY KEY, body text)",
    "CREATE TABLE note (id uuid PRIMARY KEY, body text)",
    "CREATE TABLE offer (id integer PRIMARY KEY, body text)",
    # Schemas before and after "textsim" in the order of a dump, and names that need quotes.
    "CREATE SCHEMA zebra",
    'CREATE TABLE zebra."My ""own"" Table" ("Key" text PRIMARY KEY, "The Text" varchar)',
    "CREATE SCHEMA blog",
    "CREATE TABLE blog.article (id bigint PRIMARY KEY, body text) PARTITION BY RANGE (id)",
    "CREATE TABLE blog.article_1 PARTITION OF blog.article FOR VALUES FROM (0) TO (100)",
    "CREATE TABLE blog.article_2 PARTITION OF blog.article FOR VALUES FROM (100) TO (200)",
    "CREATE TABLE blog.message (id bigint, day date, body text, PRIMARY KEY (id, day)) "
    "PARTITION BY LIST (day)",
    "CREATE TABLE blog.message_1 PARTITION OF blog.message FOR VALUES IN ('2026-11-01')",
    "CREATE TABLE blog.message_2 PARTITION OF blog.message FOR VALUES IN ('2026-11-02')",
)
ATTACHED: tuple[tuple[str, list[str], str, ModeName], ...] = (
    ("article", ["id"], "body", "queue"),
    ("note", ["id"], "body", "inline"),
    ('zebra."My ""own"" Table"', ["Key"], "The Text", "inline"),
    ("blog.article", ["id"], "body", "queue"),
    ("blog.message", ["day", "id"], "body", "inline"),
)
OFFER = "Oak table for six people, two metres long, with a few scratches on one of its legs"
NOTE = "00000000-0000-0000-0000-000000000001"


def programs(server: Server) -> Path:
    """Return the folder of a pg_dump of the server's version, or else of the next newer one."""
    version = int(server.version().partition(".")[0])
    for folder in map(programs_of, range(version, 19)):
        if folder is not None and (folder / "pg_dump").exists():
            return folder
    pytest.skip(f"needs pg_dump of PostgreSQL {version} or newer")


def run_command(*command: str) -> str:
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, f"{' '.join(command)}\n{result.stderr[-2000:]}"
    return result.stdout + result.stderr


def fill(stage: Stage) -> None:
    """Create documents of all origins, pending changes, and one change that is set aside."""
    stage.run(stage.owner, f"GRANT CREATE ON DATABASE {dbname(stage.url)} TO PUBLIC")
    stage.run(stage.writer, *TABLES)
    rows = f"SELECT i, '{FOX} ' || i FROM generate_series(1, 9) i"
    stage.run(stage.writer, f"INSERT INTO article {rows}")
    with stage.connect(stage.owner) as db:
        db.create_corpus("gone").add_many(TEXTS)
        db.corpus("gone").judge("a", "b", "same")
        db.drop_corpus("gone")
        db.corpus("news").judge("a", "b", "different", "before the rebuild")
        db.corpus("news").track()
        db.corpus("news").update_clusters()
        db.corpus("news").rebuild(threshold=0.6)
        db.create_corpus("other", shingle="char:5").add_many(TEXTS)
        db.create_corpus("exact", threshold=0.4, recall=1, passages=4).add_many(TEXTS)
        db.create_corpus("unique", threshold=0.4, recall=1, is_unique=True).add_many(TEXTS)
    with stage.connect(stage.writer) as db:
        news = db.corpus("news")
        assert db.corpus("exact").add("by the writer", FOX).added == 1
        assert news.judge("b", "no document", "same")
        for table, key_columns, text, mode in ATTACHED:
            news.attach(table, text=text, mode=mode, key_columns=key_columns)
        db.corpus("unique").attach("offer", "id", "body", "inline")
    stage.run(
        stage.writer,
        f"INSERT INTO offer VALUES (1, '{OFFER}')",
        f"INSERT INTO note VALUES ('{NOTE}', '{FOX} note')",
        f"INSERT INTO note VALUES ('{NOTE[:-1]}2', repeat('{FOX} ', 2000))",
        f"INSERT INTO blog.message SELECT i, date '2026-11-01' + i % 2, '{FOX} message ' || i "
        "FROM generate_series(1, 6) i",
        f'INSERT INTO zebra."My ""own"" Table" VALUES (repeat(\'k\', 1001), \'{FOX}\')',
    )
    with stage.connect(stage.writer) as db:
        db.worker().run(until_idle=True)
        assert db.corpus("news").status().failed == 1
    stage.run(
        stage.writer,
        "UPDATE article SET body = body || ' changed' WHERE id < 4",
        "DELETE FROM article WHERE id = 9",
        f"INSERT INTO blog.article SELECT i, '{FOX} of the blog ' || i FROM generate_series(90, 110) i",
        f'INSERT INTO zebra."My ""own"" Table" VALUES (\'z\', \'{FOX} in z\')',
        "UPDATE textsim.pending SET lease_until = now() + interval '1 s' WHERE error IS NULL",
    )


def dbname(url: str) -> str:
    with psycopg.connect(url) as connection:
        return sql.Identifier(connection.info.dbname).as_string(None)


def answers(stage: Stage) -> list[object]:
    answers: list[object] = []
    with stage.connect(stage.reader) as db:
        answers += [list(db.corpora()), sorted(db.sources())]
        for name in db.corpora():
            corpus = db.corpus(name)
            answers += [
                corpus.config,
                len(corpus),
                [corpus.query(text, 0.4) for text in (FOX, *(text for _, text in TEXTS))],
                sorted(corpus.pairs(0.4)),
                corpus.status()[:4],
                corpus.pending(),
                list(corpus.judgements()),
                # After a restore check() reports each attached table until a worker compares it.
                [problem for problem in corpus.check() if problem.kind != "attached table"],
                sorted(stage.run(stage.reader, f"SELECT * FROM textsim.pairs('{name}', 0.4)")),
                stage.run(stage.reader, f"SELECT * FROM textsim.matches('{name}', '{FOX}', 0.4)"),
            ]
    return answers


def members(stage: Stage) -> list[Member]:
    with stage.connect(stage.reader) as db:
        return list(db.corpus("news").members())


def clusters(stage: Stage) -> list[object]:
    """Return the tracked clusters, how far they are behind, and their history."""
    with stage.connect(stage.reader) as db:
        news = db.corpus("news")
        return [list(news.members()), news.status()[8:14], list(news.cluster_events())]


def sequences(stage: Stage) -> list[tuple[object, ...]]:
    query = "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'textsim'"
    return stage.run(stage.owner, f"{query} ORDER BY 1")


def use_everything(stage: Stage) -> None:
    """Write to every table in every way, run workers, and create and drop corpora."""
    stage.run(
        stage.writer,
        f"INSERT INTO article VALUES (20, '{FOX} twenty')",
        "DELETE FROM blog.article_1 WHERE id = 91",
        "UPDATE blog.article SET id = id + 100 WHERE id = 92",
        f"UPDATE note SET body = '{FOX} another note' WHERE id = '{NOTE}'",
        "TRUNCATE blog.article_2",
        "DROP TABLE blog.message_2",
        "UPDATE blog.message SET id = id + 10 WHERE id = 2",
        f'INSERT INTO zebra."My ""own"" Table" VALUES (\'y\', \'{FOX} in y\')',
    )
    keys = stage.run(stage.writer, f"SELECT key FROM textsim.matches('news', '{FOX} in y', 0.99)")
    assert ("y",) in keys  # mode inline indexes a row at once
    keep_out(stage)
    with stage.connect(stage.writer) as db:
        news = db.corpus("news")
        news.pending(retry=True)
        worker = db.worker(lease=1)
        # Changes that were leased at the time of the dump are claimed when the lease ends.
        for _ in range(3):
            worker.run(until_idle=True)
            if news.status().pending == 0:
                break
            stage.run(stage.writer, "SELECT pg_sleep(1)")
        assert worker.unusable == {}
        assert news.status().pending == 0
        assert len(news.pending()) == 1
        assert [d for d in news.drift() if len(d.key) < 1000] == []
        assert news.check() == []
    with stage.connect(stage.owner) as db:
        db.corpus("news").rebuild(threshold=0.7)
        db.create_corpus("later").add_many(TEXTS)
        db.drop_corpus("other")
        assert all(db.corpus(name).check() == [] for name in db.corpora())
    with stage.connect(stage.writer) as db:
        db.corpus("news").detach("blog.article")
        db.corpus("news").attach("blog.article", "id", "body")
        db.corpus("news").update_clusters()
        assert db.corpus("news").status().outdated == 0
        assert db.corpus("news").check() == []


def keep_out(stage: Stage) -> None:
    """Assert that no writer adds a near-duplicate to the unique corpus."""
    twin = f"{OFFER} today"
    add = f"SELECT textsim.add('unique', 'twin', '{twin}')"
    for statement in (add, f"INSERT INTO offer VALUES (2, '{twin}')"):
        with pytest.raises(psycopg.errors.UniqueViolation, match='unique corpus "unique"'):
            stage.run(stage.writer, statement)
    with stage.connect(stage.writer) as db:
        (match,) = db.corpus("unique").add_unique("twin", twin).matches
        assert match.key == "1"


def check_functions(stage: Stage) -> None:
    """Assert that the functions of each corpus exist, and creating them again changes nothing."""
    query = CATALOG["functions"]
    before = fetch_sorted(stage.url, query)
    corpora = stage.run(stage.owner, "SELECT id FROM textsim.corpus")
    assert corpora
    for (number,) in corpora:
        pattern = rf"textsim\._(candidates|write)_{number}\("
        assert len([name for name, *_ in before if re.match(pattern, name)]) == 2
    stage.run(stage.owner, "SELECT textsim._make_functions(c.id) FROM textsim.corpus c")
    assert fetch_sorted(stage.url, query) == before


def rights(stage: Stage) -> list[tuple[object, ...]]:
    # From PostgreSQL 17 on, an owner also has the right MAINTAIN.
    rows = fetch_sorted(stage.url, RIGHTS)
    return [(*row[:2], (row[2] or "").replace("xtm/", "xt/")) for row in rows]


def check(stage: Stage, restored: Stage, uses_both: bool = False) -> None:
    """Assert that a restored database equals the original, can be used, and perhaps equals it then."""
    assert answers(restored) == answers(stage)
    assert clusters(restored) == clusters(stage)
    with psycopg.connect(restored.url) as new, psycopg.connect(stage.url) as old:
        same_version = new.info.server_version == old.info.server_version
    if same_version:  # versions print some definitions differently
        assert_same_schemas(stage.url, restored.url)
    assert rights(restored) == rights(stage)
    assert sequences(restored) == sequences(stage)
    assert any(str(name).startswith("document_") for name, _ in sequences(restored))
    check_functions(restored)
    for each in (stage, restored) if uses_both else (restored,):
        ids = {(member.key, member.cluster) for member in members(each)}
        assert ids
        use_everything(each)
        assert len(ids & {(member.key, member.cluster) for member in members(each)}) > 1
    assert not uses_both or answers(restored) == answers(stage)
