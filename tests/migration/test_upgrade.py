"""A database of each released version reaches the newest schema, whole or not at all."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import alembic.command
import psycopg
import pytest

import textsim_db as ts
from tests.support.catalog import schema_catalog, without_leftovers
from tests.support.connections import engine_of, with_option
from tests.support.dumps import UTF8
from tests.support.own_alembic import own_alembic, run_alembic
from tests.support.released import ROOT, Release, each_release
from tests.support.roles import new_stage
from tests.support.sampling import sample
from tests.support.servers import Server
from tests.support.steps import later_step
from tests.support.tracked import Groups, compare, expected_ids, ids_of
from textsim_db.db import schema
from textsim_db.errors import RecipeError
from textsim_db.settings.named_values import Linkage
from textsim_db.text.tokens import normal_form


def run_steps(url: str, release: Release) -> None:
    """Run the steps since a release and then the script, as the page shows it for psql."""
    with psycopg.connect(url, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match=release.revision):
            connection.execute(schema.script().encode())
        connection.rollback()
        for name in schema.revisions():
            if name > release.revision:
                with connection.transaction():
                    connection.execute(schema.file("schema/13_begin_step.sql").encode())
                    connection.execute(schema.file(f"upgrade/{name}.sql").encode())
                    stamp = "UPDATE textsim.alembic_version SET version_num = %s"
                    connection.execute(stamp, [name])
        connection.execute(schema.script().encode())


STORED = """
CREATE TABLE story (id int PRIMARY KEY, body text);
SELECT textsim.create_corpus('news', seed => 1);
SELECT textsim.attach('news', 'story', 'id', 'body');
"""
WAYS = ["install", "script", "alembic", "alembic --sql", "own Alembic", "embedded"]
TWO_STEPS_AT_ONCE = {"script", "own Alembic", "embedded"}


@pytest.mark.both_servers
@pytest.mark.parametrize("way", sample(WAYS, 6, "more"))
@each_release
def test_each_way_of_an_upgrade(server: Server, release: Release, way: str, tmp_path: Path) -> None:
    with (
        server.database(UTF8) as url,
        server.database(UTF8) as new_url,
        later_step() if way in TWO_STEPS_AT_ONCE else nullcontext(),
    ):
        release.call("textsim_db", "install", url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(STORED)
        old = schema_catalog(url)
        if way == "install":
            assert ts.install(url) == schema.head()
        elif way == "script":
            run_steps(url, release)
        elif way == "alembic":
            run_alembic(url, "upgrade", "head")
        elif way == "alembic --sql":
            printed = run_alembic("", "upgrade", f"{release.revision}:head", "--sql")
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(printed.encode())
        elif way == "own Alembic":
            alembic.command.upgrade(own_alembic(tmp_path, url), "5f3a")
        else:
            with engine_of(url) as engine:
                schema.ensure_installed(engine)
        ts.install(new_url)
        with psycopg.connect(new_url, autocommit=True) as connection:
            connection.execute(STORED)
        new = schema_catalog(new_url)
        assert without_leftovers(schema_catalog(url), old, new) == new


@pytest.mark.more
@each_release
def test_a_step_with_a_new_recipe_leaves_stored_corpora(server: Server, release: Release) -> None:
    """SQL refuses them until a rebuild; older clients go on, and no change of a table is lost.

    The step also has newer lists of guards, on which a corpus without guards does not depend.
    """
    with server.database(UTF8) as url, psycopg.connect(url, autocommit=True) as connection:
        release.call("textsim_db", "install", url)
        connection.execute(STORED)
        connection.execute("SELECT textsim.add('news', 'a', 'one two three four')")
        with later_step(("11_arguments_of_searches", "RETURN 3;", "RETURN 4;")):
            ts.install(url)
        matches = "SELECT key FROM textsim.matches('news', 'one two three four') ORDER BY key"
        with pytest.raises(psycopg.errors.FeatureNotSupported, match=r"by recipe 3; .* recipe 4"):
            connection.execute(matches)
        connection.execute("INSERT INTO story VALUES (1, 'one two three four')")
        with ts.connect(url) as db:
            db.worker().run(until_idle=True)
            news = db.corpus("news")
            assert [match.key for match in news.query("one two three four")] == ["1", "a"]
            assert news.check() == []


@pytest.mark.more
@each_release
def test_guards_of_a_release_are_computed_anew(server: Server, release: Release) -> None:
    """A corpus whose lists have changed since is refused by name until a rebuild."""
    with server.database(UTF8) as url, psycopg.connect(url, autocommit=True) as connection:
        release.call("textsim_db", "install", url)
        for name, guards, guard_words in (
            ("facts", "numbers,negations", ""),
            ("own", "words", "x"),
        ):
            connection.execute(
                "SELECT textsim.create_corpus(%s, shingle => 'word:1', threshold => 0.5, recall => 1, "
                "guards => string_to_array(%s, ','), guard_words => string_to_array(%s, ','))",
                [name, guards, guard_words],
            )
            connection.execute("SELECT textsim.add(%s, 'a', 'Er hat Zeit in Raum 26')", [name])
            connection.execute(
                "SELECT textsim.add(%s, 'b', 'Er hat kaum Zeit in Raum 26.')", [name]
            )
        ts.install(url)
        duplicates = "SELECT key FROM textsim.duplicates(%s)"
        message = "version 1 of the lists of guards"
        with pytest.raises(psycopg.errors.FeatureNotSupported, match=message) as refused:
            connection.execute(duplicates, ["facts"])
        assert refused.value.diag.message_hint == "Run: textsim rebuild facts"
        with ts.connect(url) as db:
            with pytest.raises(RecipeError, match=f"{message}.*textsim rebuild facts"):
                db.corpus("facts")
            assert connection.execute(duplicates, ["own"]).fetchall() == [("b",)]
            db.corpus("facts", to_rebuild=True).rebuild()
            assert db.corpus("facts").check() == []
        # The lists of the release did not have the word.
        assert connection.execute(duplicates, ["facts"]).fetchall() == []


@pytest.mark.more
@each_release
def test_default_privileges_take_no_function_from_a_role(server: Server, release: Release) -> None:
    """An installation opens its functions, and so does an upgrade."""
    close = "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC"

    def install(address: str) -> None:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(close)
            ts.install(address)
            connection.execute("CREATE FUNCTION of_user() RETURNS int LANGUAGE sql RETURN 1")

    with new_stage(server, install=install) as stage:
        assert stage.run(stage.reader, "SELECT key FROM textsim.matches('news', 'one two')") == []
        assert stage.run(stage.writer, "SELECT textsim.add('news', 'x', 'one two three')")
        stage.run(stage.writer, "CALL textsim.index_pending('news')")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            stage.run(stage.reader, "SELECT of_user()")
        with stage.connect(stage.writer) as db:
            assert db.corpus("news").query("one two three", 1)[0].key == "x"

    def install_release(address: str) -> None:
        release.call("textsim_db", "install", address)
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(close)
        ts.install(address)

    with new_stage(server, install=install_release) as stage:
        stage.run(
            stage.writer,
            "CREATE TABLE article (id int PRIMARY KEY, body text)",
            "INSERT INTO article VALUES (1, 'one two three')",
            "SELECT textsim.attach('news', 'article', 'id', 'body')",
            "CALL textsim.index_pending('news')",
        )
        keys = stage.run(stage.reader, "SELECT key FROM textsim.matches('news', 'one two three')")
        assert keys == [("1",)]


@pytest.mark.more
@each_release
def test_clusters_of_another_linkage_keep_their_ids(server: Server, release: Release) -> None:
    """The next update groups them anew, and logs each change; the upgrade changes no cluster."""
    texts = {
        f"{place:03}": " ".join(f"w{place * 7 % 150 + offset}" for offset in range(12))
        for place in range(100)
    }
    tracked = [(linkage, mode) for linkage in Linkage for mode in ("queue", "inline")]
    with server.database(UTF8) as url, psycopg.connect(url, autocommit=True) as connection:
        release.call("textsim_db", "install", url)
        before: dict[str, list[tuple[str, int, str]]] = {}
        members = "SELECT key, cluster, representative FROM textsim.members(%s) ORDER BY key"
        for linkage, mode in tracked:
            name = f"{linkage} {mode}"
            settings = "shingle => 'word:1', threshold => 0.6, recall => 1"
            create = f"SELECT textsim.create_corpus(%s, {settings})"
            connection.execute(create.encode(), [name])
            add = "SELECT textsim.add(%s, %s, %s)"
            for key, text in texts.items():
                connection.execute(add, [name, key, text])
            connection.execute("SELECT textsim.judge(%s, '001', '002', 'same')", [name])
            connection.execute("SELECT textsim.track(%s, %s, mode => %s)", [name, linkage, mode])
            connection.execute("CALL textsim.update_clusters(%s)", [name])
            before[name] = connection.execute(members, [name]).fetchall()
        ts.install(url)
        with ts.connect(url) as db:
            for linkage, mode in tracked:
                name = f"{linkage} {mode}"
                corpus = db.corpus(name)
                waiting = 0 if linkage == "kept" else len(texts)
                assert connection.execute(members, [name]).fetchall() == before[name]
                assert (corpus.status().outdated, corpus.check()) == (waiting, [])
                assert corpus.update_clusters() == waiting
                ids = ids_of(connection, corpus)
                old: Groups = {
                    cluster: (
                        ids[representative],
                        frozenset(ids[key] for key, other, _ in before[name] if other == cluster),
                    )
                    for _, cluster, representative in before[name]
                }
                new = compare(connection, corpus, 0.6)
                assert (new == old) == (linkage == "kept"), name
                found = {root: cluster for cluster, (root, _) in new.items()}
                kept = expected_ids(old, new)
                assert kept
                assert {root: found[root] for root in kept} == kept
                corpus.add("new", texts["050"])
                corpus.update_clusters()
                compare(connection, corpus, 0.6)
                assert corpus.check() == []
                db.drop_corpus(corpus.name)
        of_corpora = "SELECT proname FROM pg_proc WHERE proname ~ '^_.*_[0-9]+$'"
        assert connection.execute(of_corpora).fetchall() == []


@pytest.mark.more
@each_release
def test_an_upgrade_deadlocks_no_other_transaction(server: Server, release: Release) -> None:
    """One transaction reads a document before its corpus; another one reads a view.

    The upgrade gives way after 300 ms. On a busy machine that may take over a second, the default of
    deadlock_timeout, so the others have a longer one.
    """
    patient = "deadlock_timeout=20s"
    with server.database(UTF8) as url, psycopg.connect(with_option(url, patient)) as user:
        release.call("textsim_db", "install", url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(STORED)
        user.execute("SELECT FROM textsim.document_1")
        with pytest.raises(ts.TextsimError, match="lock timeout"):
            ts.install(with_option(url, "lock_timeout=200ms"))
        reading = psycopg.connect(with_option(url, patient), autocommit=True)
        with ThreadPoolExecutor() as threads, reading as reader:
            upgrade = threads.submit(ts.install, url)
            ends_at = time.monotonic() + 1.5  # longer than the deadlock_timeout of the upgrade
            while not upgrade.done():
                reader.execute("SELECT FROM textsim.sources")
                if time.monotonic() > ends_at:
                    user.execute("SELECT textsim.add('news', 'a', 'one two')")
                    user.commit()
            assert upgrade.result() == schema.head()


CUT = """
CREATE TABLE place (cut_at integer);
INSERT INTO place VALUES (0);
CREATE SEQUENCE command;
CREATE FUNCTION cut() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
    IF nextval('public.command') = (SELECT p.cut_at FROM public.place p) THEN
        PERFORM pg_terminate_backend(pg_backend_pid());
    END IF;
END $$;
CREATE EVENT TRIGGER cut ON ddl_command_end EXECUTE FUNCTION cut();
"""


@pytest.mark.more
@each_release
def test_cut_upgrades_change_nothing(server: Server, release: Release, rng: random.Random) -> None:
    """The session is ended after the first, the last and some other statements."""
    with server.database(UTF8) as url, psycopg.connect(url, autocommit=True) as connection:
        release.call("textsim_db", "install", url)
        connection.execute("SELECT textsim.create_corpus('news')")
        connection.execute(CUT)
        ended_at = 0
        for place in (1, *sorted(rng.sample(range(2, 300), 3)), 100_000):
            before = schema_catalog(url)
            connection.execute("SELECT setval('command', 1, false)")
            connection.execute("UPDATE place SET cut_at = %s", [place])
            try:
                ts.install(url)
            except ts.TextsimError:
                assert schema_catalog(url) == before
                ended_at = place
            else:
                assert schema_catalog(url) != before
        assert ended_at > 1


@each_release
def test_the_steps_of_a_release_stay_as_they_are(release: Release) -> None:
    count = schema.revisions().index(release.revision) + 1
    folder = release.folder / "textsim_db" / "_migrations" / "versions"
    stems = sorted(file.stem for file in folder.glob("[0-9]*.py"))
    assert stems == list(schema.revisions()[:count])
    for file in (release.sql / "upgrade").glob("*"):
        assert file.read_bytes() == (ROOT / "sql" / "upgrade" / file.name).read_bytes()


@pytest.mark.more
@each_release
def test_characters_keep_their_forms_without_word_ids(server: Server, release: Release) -> None:
    """The step composes them; triggers, nodes and the log see no change, and no word is left."""
    texts = {f"{i:02}": f"The QUICK brown fox number {i // 4} jumps!" for i in range(40)}
    texts |= {"empty": "?!", "late": "a text whose words have no ids"}
    settings = "shingle => 'char:3', threshold => 0.7, recall => 1, passages => 12"
    forms = "SELECT key, textsim._stored_form(%s, word_ids, normal_form) FROM textsim.document_{}"
    pairs = "SELECT a, b, similarity FROM textsim.pairs('titles') ORDER BY a, b"
    members = "SELECT key, cluster, representative FROM textsim.members('titles') ORDER BY key"
    nodes = (
        "SELECT d.key, dense_rank() OVER (ORDER BY n.node) FROM textsim.document_1 d "
        "JOIN textsim.node_1 n ON n.document_id = d.id "
        "WHERE d.key IN ('copy', 'later', 'other') ORDER BY d.key"
    )
    with server.database(UTF8) as url, psycopg.connect(url, autocommit=True) as connection:
        release.call("textsim_db", "install", url)
        connection.execute(f"SELECT textsim.create_corpus('titles', {settings})".encode())
        connection.execute("SELECT textsim.create_corpus('words', shingle => 'word:2')")
        for name in ("titles", "words"):
            for key, text in texts.items():
                if key == "late":
                    connection.execute("CALL textsim.index_pending(%s)", [name])
                connection.execute("SELECT textsim.add(%s, %s, %s)", [name, key, text])
        connection.execute("SELECT textsim.track('titles', 'kept')")
        connection.execute("CALL textsim.update_clusters('titles')")
        for key in ("later", "other"):  # nodes of documents after the first update have hashes
            connection.execute(
                "SELECT textsim.add('titles', %s, %s)", [key, f"{key}: jumps, and sleeps!"]
            )
        connection.execute("CALL textsim.index_pending('titles')")
        queries = [(pairs, []), (members, []), *((forms.format(n), [n]) for n in (1, 2))]
        before = [sorted(connection.execute(query.encode(), values)) for query, values in queries]
        assert before[0]
        assert any(cluster for _, cluster, _ in before[1])
        ts.install(url)
        after = [sorted(connection.execute(query.encode(), values)) for query, values in queries]
        assert after == before
        counts = (
            "SELECT count(*), count(word_ids), (SELECT count(*) > 0 FROM textsim.word_{0}) "
            "FROM textsim.document_{0}"
        )
        assert connection.execute(counts.format(1).encode()).fetchone() == (44, 0, False)
        assert connection.execute(counts.format(2).encode()).fetchone() == (42, 41, True)
        log = "SELECT kind, corpus_id, keys FROM textsim.pending"
        assert connection.execute(log).fetchall() == [("words", 2, ["late"])]
        with ts.connect(url) as db:
            titles = db.corpus("titles")
            assert (titles.status().outdated, titles.check()) == (0, [])
            titles.add("copy", "LATER: jumps, and sleeps")
            titles.update_clusters()
            assert connection.execute(nodes).fetchall() == [("copy", 1), ("later", 1), ("other", 2)]
            titles.rebuild()
            assert titles.normal_form("07") == normal_form(texts["07"])
            assert titles.check() == db.corpus("words").check() == []
