"""Generated parts of the pages are current: the reference, and the figures of benchmarks."""

from __future__ import annotations

import subprocess
import sys

import pytest

from scripts.figures import PAGES
from scripts.write_reference import FOLDER, commands_page, python_page, sql_page
from tests.docs.page import ROOT

AGAIN = "to write it again: python -m scripts.write_reference"


def test_the_commands() -> None:
    assert (FOLDER / "commands.md").read_text(encoding="utf-8") == commands_page(), AGAIN


def test_sql(database_url: str) -> None:
    assert (FOLDER / "sql.md").read_text(encoding="utf-8") == sql_page(database_url), AGAIN


def test_python() -> None:
    pytest.importorskip("pyspark")  # the page has its functions as well
    assert (FOLDER / "python.md").read_text(encoding="utf-8") == python_page(), AGAIN


def test_the_pages_show_the_recorded_figures() -> None:
    command = [sys.executable, "-m", "scripts.figures", "--check"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, f"{checked.stdout}{checked.stderr}\nrun: make figures"
    assert ROOT / "README.md" in PAGES
