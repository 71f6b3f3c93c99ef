"""textsim warm and db install when all kernels are compiled; an integration test compiles them."""

from __future__ import annotations

from pathlib import Path

import numba
import pytest
from typer.testing import CliRunner

from textsim_db.cli import app
from textsim_db.database import URL_VARIABLE
from textsim_db.text import compiled_mark

COMPILED = "all kernels are compiled\n"


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of a mark that only this test uses."""
    file = tmp_path / "compiled"
    monkeypatch.setattr(compiled_mark, "_file", lambda: file)
    return file


def test_a_mark_holds_for_the_source_and_the_compiler(
    mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not compiled_mark.is_set()
    compiled_mark.set_mark()
    assert compiled_mark.is_set()
    monkeypatch.setattr(numba, "__version__", "another")
    assert not compiled_mark.is_set()


def test_a_folder_that_cannot_be_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in (None, tmp_path / "missing" / "compiled"):
        monkeypatch.setattr(compiled_mark, "_file", lambda file=file: file)
        compiled_mark.set_mark()
        assert not compiled_mark.is_set()


def test_warm_needs_no_database_if_all_kernels_are_compiled(mark: Path) -> None:
    compiled_mark.set_mark()
    runner = CliRunner(env={URL_VARIABLE: "postgresql://127.0.0.1:1/none"})
    result = runner.invoke(app, ["warm"])
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", COMPILED)


def test_install_compiles_unless_it_is_told_not_to(mark: Path, database_url: str) -> None:
    compiled_mark.set_mark()
    runner = CliRunner(env={URL_VARIABLE: database_url})
    assert runner.invoke(app, ["db", "install"]).stderr.endswith(f"\n{COMPILED}")
    assert COMPILED not in runner.invoke(app, ["db", "install", "--no-warm"]).stderr
