"""The outputs of textsim dedupe: standard output, pipes, links, reports, and full disks."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import textsim_db as ts
from benchmarks.generate import documents
from tests.support.commands import Textsim, process
from tests.support.records import A, as_csv, as_jsonl, as_parquet, ids_of, records
from tests.support.sampling import sample
from textsim_db.db import stored_corpus
from textsim_db.files.record_files import RecordColumns, RecordFile
from textsim_db.write.temporary_corpora import PREFIX


def test_standard_input_and_output(textsim: Textsim) -> None:
    result = textsim("dedupe", "-", "-o", "-", input=as_jsonl(records()).decode())
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == ["a", "b", "d"]
    result = textsim("dedupe", "-", "--kind", "csv", "-o", "-", input=as_csv(records()).decode())
    assert [line[0] for line in result.stdout.splitlines()] == ["i", "a", "b", "d"]


def test_the_output_may_be_the_input(textsim: Textsim) -> None:
    Path("in.jsonl").write_bytes(as_jsonl(records()))
    os.chmod("in.jsonl", 0o640)
    textsim("dedupe", "in.jsonl", "-o", "in.jsonl")
    assert ids_of("in.jsonl") == ["a", "b", "d"]
    assert os.stat("in.jsonl").st_mode & 0o777 == 0o640
    assert os.listdir() == ["in.jsonl"]


def test_links_stay_links(textsim: Textsim) -> None:
    os.mkdir("folder")
    Path("folder/in.jsonl").write_bytes(as_jsonl(records()))
    os.link("folder/in.jsonl", "hard.jsonl")
    os.symlink("folder/in.jsonl", "link.jsonl")
    os.symlink("folder/new.jsonl", "dangling.jsonl")
    textsim("dedupe", "link.jsonl", "-o", "dangling.jsonl")
    textsim("dedupe", "link.jsonl", "-o", "link.jsonl")
    assert os.readlink("link.jsonl") == "folder/in.jsonl"
    assert os.readlink("dangling.jsonl") == "folder/new.jsonl"
    assert ids_of("folder/in.jsonl") == ids_of("folder/new.jsonl") == ["a", "b", "d"]
    assert ids_of("hard.jsonl") == list("abcde")  # it is another file by now
    assert sorted(os.listdir("folder")) == ["in.jsonl", "new.jsonl"]
    os.symlink("loop.jsonl", "loop.jsonl")
    result = textsim("dedupe", "link.jsonl", "-o", "loop.jsonl", status=2)
    assert "loop.jsonl: Too many levels of symbolic links" in result.stderr


def test_pipes(textsim: Textsim) -> None:
    Path("in.jsonl").write_bytes(as_jsonl(records()))
    os.mkfifo("pipe.jsonl")
    os.mkfifo("report.jsonl")
    for arguments in (["-o", "pipe.jsonl"], ["--report", "report.jsonl"]):
        with subprocess.Popen(
            ["timeout", "60", "cat", arguments[1]], stdout=subprocess.PIPE
        ) as reader:
            textsim("dedupe", "in.jsonl", *arguments)
            read, _ = reader.communicate()
        lines = [json.loads(line) for line in read.splitlines()]
        if arguments[0] == "-o":
            assert [line["id"] for line in lines] == ["a", "b", "d"]
        else:
            assert [line["kept"]["key"] for line in lines] == ["a"]
        assert stat.S_ISFIFO(os.stat(arguments[1]).st_mode)
    with subprocess.Popen(["timeout", "60", "cp", "in.jsonl", "pipe.jsonl"]) as writer:
        textsim("dedupe", "pipe.jsonl", "-o", "out.jsonl")
        assert writer.wait() == 0
    assert ids_of("out.jsonl") == ["a", "b", "d"]
    assert sorted(os.listdir()) == ["in.jsonl", "out.jsonl", "pipe.jsonl", "report.jsonl"]
    Path("in.parquet").write_bytes(as_parquet(records()))
    os.mkfifo("pipe.parquet")
    with subprocess.Popen(["timeout", "60", "cp", "pipe.parquet", "out.parquet"]) as copier:
        textsim("dedupe", "in.parquet", "-o", "pipe.parquet")
        assert copier.wait() == 0
    assert ids_of("out.parquet") == ["a", "b", "d"]


def test_a_report_overwrites_neither_input_nor_output(textsim: Textsim) -> None:
    Path("in.jsonl").write_bytes(as_jsonl(records()))
    os.link("in.jsonl", "hard.jsonl")
    os.symlink("in.jsonl", "link.jsonl")
    os.symlink("new.jsonl", "dangling.jsonl")
    for arguments, what in [
        (["in.jsonl", "-o", "x.jsonl", "--report", "in.jsonl"], "INPUT"),
        (["in.jsonl", "-o", "x.jsonl", "--report", "./link.jsonl"], "INPUT"),
        (["link.jsonl", "-o", "x.jsonl", "--report", "hard.jsonl"], "INPUT"),
        (["in.jsonl", "-o", "x.jsonl", "--report", "x.jsonl"], "OUTPUT"),
        (["in.jsonl", "-o", "new.jsonl", "--report", "dangling.jsonl"], "OUTPUT"),
    ]:
        result = textsim("dedupe", *arguments, status=2)
        message = f"{arguments[-1]} is also {what}; name another file"
        assert message in " ".join(result.stderr.replace("│", " ").split())
        assert Path("in.jsonl").read_bytes() == as_jsonl(records())
        assert len(os.listdir()) == 4


@pytest.mark.more
@pytest.mark.parametrize("what", ["INPUT", "OUTPUT"])
def test_a_report_overwrites_no_standard_stream(
    database_url: str, tmp_path: Path, what: str
) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(as_jsonl(records()))
    names = ["-", "-o", "x"] if what == "INPUT" else ["none.jsonl", "-o", "-"]
    with file.open("r+b") as opened:
        stream = {"stdin" if what == "INPUT" else "stdout": opened}
        done = process("dedupe", *names, "--report", str(file), url=database_url, **stream)
    _, told = done.communicate()
    assert done.returncode == 2
    assert f"is also {what}" in " ".join(told.replace("│", " ").split())
    assert file.read_bytes() == as_jsonl(records())


def test_a_full_disk(textsim: Textsim) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    Path("in.jsonl").write_bytes(as_jsonl(records()))
    with (
        Path("/dev/full").open("wb", buffering=0) as full,
        RecordFile("in.jsonl", RecordColumns("text")) as opened,
        opened._reader() as reader,
        pytest.raises(OSError, match="No space"),
    ):
        reader.copy(np.ones(5, bool), full)
    # A device of the test's own: root could replace /dev/full itself.
    try:
        os.mknod("full.jsonl", stat.S_IFCHR | 0o666, os.stat("/dev/full").st_rdev)
        Path("full.jsonl").open("wb").close()
    except PermissionError:
        pytest.skip("no device can be made here")
    for arguments in (["-o", "full.jsonl"], ["--report", "full.jsonl"]):
        result = textsim("dedupe", "in.jsonl", *arguments, status=2)
        assert "full.jsonl: No space left on device" in result.stderr
        assert stat.S_ISCHR(os.stat("full.jsonl").st_mode)


@pytest.mark.more
def test_a_full_disk_behind_standard_output(database_url: str, tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    file = tmp_path / "a.jsonl"
    file.write_bytes(as_jsonl(records()))
    for kind in ("jsonl", "parquet"):
        arguments = ["dedupe", str(file), "-o", "-", "--output-kind", kind]
        with Path("/dev/full").open("wb") as full:
            done = process(*arguments, url=database_url, stdout=full, stdin=subprocess.DEVNULL)
        _, told = done.communicate(timeout=120)
        assert done.returncode == 2
        assert "error: standard output: No space left on device" in told


def test_reports_of_keys_with_lone_surrogates(textsim: Textsim) -> None:
    Path("in.jsonl").write_text(
        "".join(f'{{"id": "\\ud80{i}", "text": "{A}"}}\n' for i in range(2))
    )
    textsim("dedupe", "in.jsonl", "--report", "r.jsonl")
    assert r"\ud801" in Path("r.jsonl").read_text()
    assert json.loads(Path("r.jsonl").read_text())["removed"][0]["key"] == "\ud801"


@pytest.mark.more
@pytest.mark.parametrize("how", sample([signal.SIGINT, signal.SIGKILL], 2))
def test_an_interrupted_process_leaves_no_output(
    textsim: Textsim, database_url: str, how: signal.Signals
) -> None:
    texts = documents(30_000, words=60, seed=3)
    Path("in.jsonl").write_bytes(as_jsonl([{"id": i, "text": t} for i, t in texts]))
    command = [sys.executable, "-m", "textsim_db.cli", "dedupe", "in.jsonl", "-o", "out.jsonl"]
    environment = {**os.environ, "TEXTSIM_DATABASE_URL": database_url}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    with ts.connect(database_url) as db:
        while not (names := stored_corpus.names(db.engine)):
            assert process.poll() is None
            time.sleep(0.01)
        assert names[0].startswith(PREFIX)
        assert db.corpora() == []
        process.send_signal(how)
        _, messages = process.communicate()
        assert not Path("out.jsonl").exists()
        if how == signal.SIGINT:
            # A shell shows 130 for both. Python ends by the signal if it comes in the cleanup.
            assert process.returncode in (130, -signal.SIGINT), messages
            assert messages == b"interrupted\n"
            assert stored_corpus.names(db.engine) == []
            return
        assert stored_corpus.names(db.engine) == names
        for command in (["corpus", "list"], ["status"], ["check"]):
            result = textsim(*command)
            assert PREFIX not in result.stdout + result.stderr
        Path("small.jsonl").write_bytes(as_jsonl(records()))
        textsim("dedupe", "small.jsonl", "-o", "out.jsonl")
        assert stored_corpus.names(db.engine) == []
