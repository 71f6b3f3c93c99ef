"""Messages on standard error with --log-json and --log-level, progress, and textsim status."""

from __future__ import annotations

import io
import json
import logging
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.commands import Terminal, Textsim, process, replace_standard_error
from tests.support.waiting import PATIENCE_SECONDS
from textsim_db.base import numba_compiler
from textsim_db.cli import messages, progress_lines


def test_commands_announce_that_kernels_are_compiled(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba_compiler, "_is_announced", False)
    with messages.log_to_stderr():
        for _ in range(2):
            numba_compiler._announce()
    message = "compiling once for this installation; textsim warm compiles all kernels\n"
    assert capsys.readouterr().err == message
    assert numba_compiler.log.name == messages.COMPILER


def records(told: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in told.splitlines()]


def write_texts(path: str, count: int) -> None:
    texts = documents(count, words=30, seed=2)
    lines = (json.dumps({"id": key, "text": text}) for key, text in texts)
    Path(path).write_text("\n".join(lines))


def test_the_summary_of_a_load_is_a_record(textsim: Textsim) -> None:
    write_texts("news.jsonl", 1500)
    told = records(textsim("--log-json", "index", "news", "news.jsonl", "--create").stderr)
    summary = told[-1]
    assert summary["logger"] == "textsim_db.cli"
    assert (summary["corpus"], summary["documents"], summary["added"]) == ("news", 1500, 1500)
    assert summary["rate"] > 0
    assert {"built the band index"} & {r["message"][:20] for r in told}


def test_errors_are_json_too(textsim: Textsim) -> None:
    for args, message in (
        (("corpus", "list", "nothing"), 'corpus "nothing" does not exist'),
        (("corpus", "drop"), "missing argument"),
        (("corpus", "drop", "nothing", "--log-level", "loud"), "is not one of debug, info"),
    ):
        (record,) = records(textsim("--log-json", *args, status=2).stderr)
        assert record["level"] == "error"
        assert message in record["message"]
    textsim("corpus", "create", "news")
    (record,) = records(textsim("corpus", "drop", "news", "--log-json", status=2).stderr)
    assert 'this would remove the corpus "news" with 0 documents' in record["message"]
    assert "give --yes to confirm" in record["message"]


def test_progress_becomes_records(textsim: Textsim, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_lines, "LOG_SECONDS", 0.0)
    write_texts("news.jsonl", 1_500)
    for args, what in (
        (("index", "news", "news.jsonl", "--create"), "indexing"),
        (("check", "news"), "checking"),
        (("rebuild", "news", "--threshold", "0.7"), "rebuilding"),
        (("stats", "news"), "reading"),
    ):
        told = records(textsim(*args, "--log-json").stderr)
        steps = [r for r in told if r["message"].startswith(f"{what}: ")]
        assert steps, told
        assert [r["documents"] for r in steps] == sorted(r["documents"] for r in steps)
        assert all(r["rate"] > 0 and r["seconds"] >= 0 for r in steps)
        assert steps[-1].get("total", 1_500) == 1_500


@pytest.mark.long
def test_the_library_configures_no_logging(database_url: str) -> None:
    code = (
        "import logging, sys, textsim_db as ts\n"
        "with ts.connect(sys.argv[1]) as db:\n"
        "    db.create_corpus('c').add_many((str(i), f'text {i}') for i in range(2000))\n"
        "    db.worker().run(until_idle=True)\n"
        "names = [n for n in logging.root.manager.loggerDict if n.startswith('textsim_db')]\n"
        "assert names\n"
        "for name in names:\n"
        "    log = logging.getLogger(name)\n"
        "    assert not log.handlers and log.level == 0 and log.propagate, name\n"
        "assert not logging.root.handlers\n"
    )
    command = [sys.executable, "-c", code, database_url]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_command_line_leaves_logging_as_it_was(textsim: Textsim) -> None:
    library = logging.getLogger("textsim_db")
    before = (library.level, list(library.handlers))
    textsim("corpus", "list", "--log-json", "--log-level", "debug")
    assert (library.level, list(library.handlers)) == before


def test_the_errors_that_drivers_log_are_not_printed() -> None:
    code = (
        "import logging, typer.testing\n"
        "from textsim_db.cli import app\n"
        "assert typer.testing.CliRunner().invoke(app, ['--version']).exit_code == 0\n"
        "for name in ('sqlalchemy.pool', 'psycopg', 'textsim_db'):\n"
        "    logging.getLogger(name).error('%s met an error', name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "textsim_db met an error\n")


@pytest.mark.long
def test_status_shows_rates(textsim: Textsim, database_url: str) -> None:
    stop = threading.Event()
    with ts.connect(database_url) as db:
        corpus = db.create_corpus("news")

        def write() -> None:
            number = 0
            while not stop.is_set():
                corpus.add(str(number % 50), f"a text that is number {number}")
                number += 1
                time.sleep(0.005)

        writer = threading.Thread(target=write)
        writer.start()
        watching = process("status", "news", "--json", "--watch", "1.5", url=database_url)
        try:
            assert watching.stdout is not None
            lines = [json.loads(watching.stdout.readline()) for _ in range(4)]
        finally:
            stop.set()
            writer.join()
            watching.send_signal(signal.SIGINT)
            watching.communicate(timeout=PATIENCE_SECONDS)
        rates = [line["corpora"][0]["written_per_second"] for line in lines]
        assert rates[0] is None or rates[0] == 0
        assert all(10 < rate < 400 for rate in rates[2:]), rates
        first, last = lines[1], lines[-1]
        end, start = (datetime.fromisoformat(each["time"]) for each in (last, first))
        seconds = (end - start).total_seconds()
        written = last["corpora"][0]["written"] - first["corpora"][0]["written"]
        assert sum(rates[2:]) / 2 == pytest.approx(written / seconds, rel=0.2)


def test_a_known_and_an_unknown_total(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = replace_standard_error(monkeypatch)
    with progress_lines.progress("checking", "documents") as show:
        show(5_000, 20_000)
    with progress_lines.progress("indexing", "rows") as show:
        show(5_000)
    for told in ("checking", "5,000 of 20,000 documents", "5,000 rows, "):
        assert told in terminal.getvalue()


def test_items_are_counted_unless_the_terminal_shows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for is_printed, output in ((False, Terminal()), (True, io.StringIO()), (True, Terminal())):
        terminal = replace_standard_error(monkeypatch)
        monkeypatch.setattr("sys.stdout", output)
        items = progress_lines.counted("searching", "pairs", range(3), are_printed=is_printed)
        assert sum(items) == 3
        told = "searching" in terminal.getvalue() and "1 pairs, " in terminal.getvalue()
        assert told is not (is_printed and output.isatty())
        assert output.getvalue() == ""


def read_to_end(terminal: int, shown: bytearray) -> None:
    with suppress(OSError):  # Linux raises it when no process has the other side any more
        while part := os.read(terminal, 10**6):
            shown.extend(part)


@pytest.mark.more
def test_long_commands_show_that_they_work(news: Textsim, database_url: str) -> None:
    news("corpus", "create", "letters", "--passages", "6")
    news("index", "letters", "news.jsonl")
    for command, told in [
        ("pairs news --format csv", "searching"),
        ("track news", "computing"),
        ("contamination news.jsonl --against letters --format csv", "comparing"),
    ]:
        mine, terminal = pty.openpty()
        with process(*command.split(), url=database_url, stderr=terminal) as started:
            # A bar that nobody reads fills the buffer of the terminal, and the command waits for ever.
            reader = threading.Thread(target=read_to_end, args=(mine, shown := bytearray()))
            reader.start()
            results, _ = started.communicate()
        os.close(terminal)
        reader.join()
        os.close(mine)
        assert told in shown.decode(), command
        assert started.returncode == 0
        assert bool(results) is not command.startswith("track")
