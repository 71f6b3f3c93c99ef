"""pg_dump and pg_restore keep everything, on the same server and on newer servers."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

import textsim_db as ts
from tests.support.catalog import CATALOG, fetch_sorted, schema_catalog
from tests.support.roles import FOX, RIGHTS, TEXTS, Stage, new_role, new_stage
from tests.support.sampling import sample
from tests.support.servers import Server, programs_of, run_server

UTF8 = "ENCODING 'UTF8' TEMPLATE template0"
VERSIONS = (15, 16, 18)
"""Versions whose programs come with the package or with the operating system."""
FORMATS = sample(["custom", "plain"], 2)
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
ATTACHED = (
    ("article", ["id"], "body", "queue"),
    ("note", ["id"], "body", "inline"),
    ('zebra."My ""own"" Table"', ["Key"], "The Text", "inline"),
    ("blog.article", ["id"], "body", "queue"),
    ("blog.message", ["day", "id"], "body", "inline"),
)
OFFER = "Oak table for six people, two metres long, with a few scratches on one of its legs"
NOTE = "00000000-0000-0000-0000-000000000001"


def run_command(*command: str) -> str:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{' '.join(command)}\n{result.stderr[-2000:]}"
    return result.stdout


def programs(server: Server) -> Path:
    version = server.version().partition(".")[0]
    folder = programs_of(int(version))
    if folder is None or not (folder / "pg_dump").exists():
        pytest.skip(f"needs pg_dump of PostgreSQL {version}")
    return folder


def dump_and_restore(folder: Path, source: str, target: str, form: str) -> None:
    """Dump with the programs of the newer server, as PostgreSQL's manual recommends."""
    with tempfile.TemporaryDirectory() as name:
        file = f"{name}/dump"
        run_command(str(folder / "pg_dump"), "--format", form, "--file", file, source)
        if form == "plain":
            command = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", file, target]
        else:
            command = ["pg_restore", "--exit-on-error", "--jobs", "2", "--dbname", target, file]
        run_command(str(folder / command[0]), *command[1:])


def fill(stage: Stage) -> None:
    """Create documents of all origins, pending changes, and one change that is set aside."""
    stage.run(stage.owner, f"GRANT CREATE ON DATABASE {dbname(stage.url)} TO PUBLIC")
    stage.run(stage.writer, *TABLES)
    stage.run(
        stage.writer, f"INSERT INTO article SELECT i, '{FOX} ' || i FROM generate_series(1, 9) i"
    )
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
        assert len(db.corpus("news").failures()) == 1
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
        answers += [db.corpora(), sorted(db.sources())]
        for name in db.corpora():
            corpus = db.corpus(name)
            answers += [
                corpus.config,
                len(corpus),
                [corpus.query(text, 0.4) for text in (FOX, *(text for _, text in TEXTS))],
                sorted(corpus.pairs(0.4)),
                corpus.status()[:4],
                corpus.failures(),
                list(corpus.judgements()),
                # After a restore check() reports each attached table until a worker compares it.
                [problem for problem in corpus.check() if problem.kind != "attached table"],
                sorted(stage.run(stage.reader, f"SELECT * FROM textsim.pairs('{name}', 0.4)")),
                stage.run(stage.reader, f"SELECT * FROM textsim.matches('{name}', '{FOX}', 0.4)"),
            ]
    return answers


def members(stage: Stage) -> list[ts.Member]:
    with stage.connect(stage.reader) as db:
        return list(db.corpus("news").members())


def clusters(stage: Stage) -> list[object]:
    """Return the tracked clusters, how far they are behind, and their history."""
    with stage.connect(stage.reader) as db:
        news = db.corpus("news")
        return [list(news.members()), news.status()[8:14], list(news.cluster_events())]


def sequences(stage: Stage) -> list[tuple[object, ...]]:
    query = (
        "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'textsim' ORDER BY 1"
    )
    return stage.run(stage.owner, query)


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
        news.retry_failures()
        worker = db.worker(lease=1)
        # Changes that were leased at the time of the dump are claimed when the lease ends.
        for _ in range(3):
            worker.run(until_idle=True)
            if news.status().pending == 0:
                break
            stage.run(stage.writer, "SELECT pg_sleep(1)")
        assert worker.unusable == {}
        assert news.status().pending == 0
        assert len(news.failures()) == 1
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
    for statement in (
        f"SELECT textsim.add('unique', 'twin', '{twin}')",
        f"INSERT INTO offer VALUES (2, '{twin}')",
    ):
        with pytest.raises(psycopg.errors.UniqueViolation, match='unique corpus "unique"'):
            stage.run(stage.writer, statement)
    with stage.connect(stage.writer) as db:
        assert [match.key for match in db.corpus("unique").add_unique("twin", twin)] == ["1"]


@pytest.mark.more
@pytest.mark.parametrize("form", FORMATS)
def test_a_dump_is_restored_on_the_same_server(
    server: Server, stage: Stage, form: str, tmp_path: Path
) -> None:
    fill(stage)
    check_dump_of_schemas(server, stage, str(tmp_path / "dump"))
    with server.database(UTF8) as url:
        # The tables shift the oids: a dump must not depend on them.
        with psycopg.connect(url) as connection:
            for number in range(50):
                connection.execute(f"CREATE TABLE other_{number} (id int)".encode())
        dump_and_restore(programs(server), stage.url, url, form)
        check(stage, replace(stage, url=url))


def check_dump_of_schemas(server: Server, stage: Stage, file: str) -> None:
    """Assert that a dump of the schema needs the schemas of the attached tables."""
    names = ("textsim", "public", "blog", "zebra")
    together = [option for name in names for option in ("-n", name)]
    for options, complete in ((together, True), (["-n", "textsim"], False)):
        run_command(str(programs(server) / "pg_dump"), "-f", file, *options, stage.url)
        with server.database(UTF8) as url:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("DROP SCHEMA public")
            psql = [str(programs(server) / "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1"]
            if complete:
                run_command(*psql, "-f", file, url)
                assert answers(replace(stage, url=url)) == answers(stage)
                continue
            # Without the attached tables the restore fails: it would have no triggers.
            with pytest.raises(AssertionError, match=r"does not exist\s+CONTEXT:  COPY source"):
                run_command(*psql, "-f", file, url)


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
    return [
        (*row[:2], (row[2] or "").replace("xtm/", "xt/")) for row in fetch_sorted(stage.url, RIGHTS)
    ]


def check(stage: Stage, restored: Stage) -> None:
    """Assert that a restored database equals the original, before and after using both."""
    assert answers(restored) == answers(stage)
    assert clusters(restored) == clusters(stage)
    with psycopg.connect(restored.url) as new, psycopg.connect(stage.url) as old:
        same_version = new.info.server_version == old.info.server_version
    if same_version:  # versions print some definitions differently
        restored_catalog, expected = schema_catalog(restored.url), schema_catalog(stage.url)
        for name in CATALOG:
            assert restored_catalog[name] == expected[name], name
    assert rights(restored) == rights(stage)
    assert sequences(restored) == sequences(stage)
    assert any(str(name).startswith("document_") for name, _ in sequences(restored))
    check_functions(restored)
    for each in (stage, restored):
        ids = {(member.key, member.cluster) for member in members(each)}
        assert ids
        use_everything(each)
        assert len(ids & {(member.key, member.cluster) for member in members(each)}) > 1
    assert answers(restored) == answers(stage)


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[int, Server]]:
    """A server of each version whose programs are installed."""
    programs_by_version = {version: programs_of(version) for version in VERSIONS}
    with ExitStack() as stack:
        servers_by_version = {}
        for version, folder in programs_by_version.items():
            if folder is not None and (folder / "pg_dump").exists():
                directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ts-")))
                directory.chmod(0o755)
                url = stack.enter_context(run_server(folder, directory))
                servers_by_version[version] = Server(url, f"dump{version}_")
        yield servers_by_version


@pytest.mark.more
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(15, 16, marks=pytest.mark.long),
        (16, 18),
        pytest.param(15, 18, marks=pytest.mark.long),
    ],
)
def test_a_dump_is_restored_on_a_newer_server(
    servers: dict[int, Server], old: int, new: int, form: str
) -> None:
    if missing := {old, new} - servers.keys():
        pytest.skip(f"needs the programs of PostgreSQL {min(missing)}")
    with ExitStack() as stack:
        stage = stack.enter_context(new_stage(servers[old]))
        fill(stage)
        target = servers[new]
        for role in (stage.owner, stage.reader, stage.writer, stage.other):
            stack.enter_context(new_role(target, role))
        url = stack.enter_context(target.database(UTF8))
        dump_and_restore(programs(target), stage.url, url, form)
        check(stage, replace(stage, url=url))


def test_a_restored_oid_of_another_table_is_not_read(db: ts.Database) -> None:
    # pg_dump writes an attached table's name, but a dropped table's oid. On the restoring server that
    # oid may belong to any table.
    corpus = db.create_corpus("c")
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, body text)")
        corpus.attach("t", "id", "body")
        connection.execute("DROP TABLE t")
        connection.execute("CREATE TABLE secret (id int PRIMARY KEY, body text)")
        connection.execute("INSERT INTO secret VALUES (1, 'not for everyone')")
        connection.execute("UPDATE textsim.source SET relation = 'secret'::regclass")
        connection.execute(
            "INSERT INTO textsim.pending (kind, corpus_id, source_id) VALUES ('compare', 1, 1)"
        )
        worker = db.worker()
        worker.run(until_idle=True)
        assert "does not have the triggers" in worker.unusable["public.secret"]
        with pytest.raises(ts.ConfigurationError, match="does not have the triggers"):
            corpus.reconcile()
        assert len(corpus) == 0
        corpus.detach("secret")
        assert db.sources() == []
