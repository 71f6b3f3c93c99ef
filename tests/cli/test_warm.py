"""textsim warm, and the memory that commands keep."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from typer.testing import CliRunner

import textsim_db as ts
from tests.support.commands import NEWS, Textsim
from textsim_db.base import numba_compiler
from textsim_db.cli import app, progress_lines, warm
from textsim_db.corpus.database import URL_VARIABLE

COMPILED = "all kernels are compiled\n"


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of a mark that only this test uses."""
    file = tmp_path / "compiled"
    monkeypatch.setattr(numba_compiler, "mark_file", lambda: file)
    return file


def test_a_mark_holds_for_source_and_compiler(mark: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not numba_compiler.are_compiled()
    numba_compiler.note_compiled()
    assert numba_compiler.are_compiled()
    monkeypatch.setattr(numba, "__version__", "another")
    assert not numba_compiler.are_compiled()


def test_an_unwritable_folder_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in (None, tmp_path / "missing" / "compiled"):
        monkeypatch.setattr(numba_compiler, "mark_file", lambda file=file: file)
        numba_compiler.note_compiled()
        assert not numba_compiler.are_compiled()


def test_warm_needs_no_database_if_all_kernels_are_compiled(mark: Path) -> None:
    numba_compiler.note_compiled()
    runner = CliRunner(env={URL_VARIABLE: "postgresql://127.0.0.1:1/none"})
    result = runner.invoke(app, ["warm"])
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", COMPILED)


def test_warm_runs_all_uses(mark: Path, textsim: Textsim, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[ts.Database] = []
    monkeypatch.setattr(warm, "_uses", lambda: [used.append] * 3)
    assert "compiled 0 kernels; " in textsim("warm").stderr
    assert textsim("warm").stderr == COMPILED
    assert len(used) == 3
    assert numba_compiler.are_compiled()


def test_install_compiles_unless_it_is_told_not_to(mark: Path, database_url: str) -> None:
    numba_compiler.note_compiled()
    runner = CliRunner(env={URL_VARIABLE: database_url})
    assert runner.invoke(app, ["db", "install"]).stderr.endswith(f"\n{COMPILED}")
    assert COMPILED not in runner.invoke(app, ["db", "install", "--no-warm"]).stderr


ALLOCATE = """
import resource, sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from textsim_db.cli.progress_lines import keep_freed_memory

if sys.argv[1] == "kept":
    assert keep_freed_memory()

def fill(_):
    arrays = [np.ones(10_000, np.uint64) for _ in range(300)]
    return len(arrays)

with ThreadPoolExecutor(1) as pool:
    list(pool.map(fill, range(3)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    list(pool.map(fill, range(10)))
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def fresh_pages(way: str) -> int:
    """Return the pages that a thread gets from the system while it fills the same arrays again."""
    command = [sys.executable, "-c", ALLOCATE, way]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="mallopt() is Linux's")
def test_a_thread_gets_its_pages_again() -> None:
    assert fresh_pages("kept") < fresh_pages("returned") / 2


@pytest.mark.parametrize("command", ["index", "dedupe"])
def test_commands_that_load_keep_memory(
    textsim: Textsim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(progress_lines, "keep_freed_memory", lambda: calls.append(command))
    path = tmp_path / "news.jsonl"
    path.write_text("\n".join(json.dumps({"id": k, "text": t}) for k, t in NEWS.items()))
    if command == "index":
        textsim("index", "news", str(path), "--create")
    else:
        textsim("dedupe", str(path), "-o", str(tmp_path / "unique.jsonl"))
    assert calls == [command]
