"""Commands as processes of their own: exit codes, pipes, signals, interrupts and lost connections."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import textsim_db as ts
from tests.support.commands import Textsim, cut_connections, give_first_document, process
from tests.support.connections import Connection
from tests.support.sampling import sample
from tests.support.waiting import wait_for
from textsim_db.cli.commands import is_interrupt
from textsim_db.corpus.database import URL_VARIABLE


@pytest.mark.long
def test_an_encoding_that_lacks_the_characters(textsim: Textsim, database_url: str) -> None:
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


@pytest.mark.more
@pytest.mark.parametrize("form", sample(["jsonl", "csv"], 2))
def test_a_reader_that_closes_the_pipe(form: str, textsim: Textsim, database_url: str) -> None:
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


def test_an_error_that_follows_from_an_interrupt_is_an_interrupt() -> None:
    def fail(interrupt: bool) -> BaseException:
        try:
            try:
                if interrupt:
                    raise KeyboardInterrupt
            finally:
                raise ts.DatabaseUnavailable("another command is in progress") from OSError()
        except ts.DatabaseUnavailable as error:
            return error

    assert is_interrupt(fail(True))
    assert not is_interrupt(fail(False))


def test_interrupt(database_url: str) -> None:
    with process("index", "c", "-", "--create", url=database_url) as started:
        give_first_document(database_url, "c", started)
        started.send_signal(signal.SIGINT)
        started.wait()
        assert started.stderr is not None
        messages = started.stderr.read()
    assert started.returncode in (130, -signal.SIGINT)
    assert messages.startswith("interrupted; 0 documents were stored and stay; repeat the command")
    assert messages.count("\n") == 1


@pytest.mark.more
def test_an_interrupt_while_a_kernel_makes_its_result(textsim: Textsim, database_url: str) -> None:
    Path("in.jsonl").write_text('{"id": 1, "text": "some text"}\n')
    program = """
import signal, sys
from numba.core import serialize
from textsim_db.cli import main

signal.signal(signal.SIGINT, signal.default_int_handler)
make = serialize._numba_unpickle

def interrupted(*arguments):
    # A kernel that returns an array and a number calls this for the array, and goes on after an error.
    if sys._getframe(1).f_code.co_name == "table_of":
        signal.raise_signal(signal.SIGINT)
    return make(*arguments)

serialize._numba_unpickle = interrupted
sys.argv = ["textsim", "dedupe", "in.jsonl", "-o", "out.jsonl"]
main()
"""
    command = [sys.executable, "-c", program]
    environment = {**os.environ, URL_VARIABLE: database_url}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
    assert not Path("out.jsonl").exists()
    assert textsim("corpus", "list").stdout == ""


@pytest.mark.long
def test_a_server_that_stops(database_url: str) -> None:
    with process("index", "c", "-", "--create", url=database_url) as started:
        give_first_document(database_url, "c", started)
        cut_connections(database_url, for_good=True)
        output, messages = started.communicate()
    assert started.returncode == 2
    assert output == ""
    error, *causes, note = messages.splitlines()
    assert error.startswith("error: no connection to the database: ")
    assert all(line.startswith("  because: ") for line in causes)
    assert note.startswith("0 documents were stored and stay; ")


def interrupt(url: str, command: str, condition: Callable[[], object]) -> tuple[int, str]:
    """Send Ctrl-C to a command when a condition holds; return its exit status and messages."""
    with process(*command.split(), url=url) as started:
        wait_for(lambda: started.poll() is not None or condition())
        if started.poll() is None:
            started.send_signal(signal.SIGINT)
        _, messages = started.communicate()
    return started.returncode, messages


@pytest.mark.more
def test_an_interrupted_attach_says_what_remains(db: ts.Database, connection: Connection) -> None:
    db.create_corpus("c")
    connection.execute("CREATE TABLE t (id int PRIMARY KEY, text text)")
    connection.execute(
        "INSERT INTO t SELECT i, string_agg(md5((i * j)::text), ' ') "
        "FROM generate_series(1, 40000) i CROSS JOIN generate_series(1, 20) j GROUP BY i"
    )

    def has_documents() -> bool:
        if connection.execute("SELECT FROM textsim.document_1 LIMIT 1").fetchone() is None:
            return False
        # The next batch waits, so the command is not done when the signal comes.
        connection.execute("BEGIN; LOCK TABLE textsim.document_1 IN SHARE MODE")
        return True

    status, messages = interrupt(db.url, "attach c t", has_documents)
    connection.execute("ROLLBACK")
    assert status == 130
    assert "the table is attached; to index the other rows: textsim worker --once" in messages


def test_a_full_folder_of_temporary_files_is_named(tmp_path: Path) -> None:
    """A limit of the size of files stands for a full disk."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    folder = tmp_path / "temporary"
    folder.mkdir()
    lines = "".join(f'{{"id": {i}, "text": "some words of text {i}"}}\n' for i in range(1000))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        patch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # the limit would cut these files off, too
        started = process("dedupe", "-", "-o", "out.jsonl", preexec_fn=limit)
    with started:
        _, told = started.communicate(lines)
    assert started.returncode == 2
    assert f"{folder}: File too large\nit has temporary files; TMPDIR names another folder" in told
