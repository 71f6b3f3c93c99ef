"""Generated parts of the pages are current: the reference, and the figures of benchmarks."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from scripts import figures
from scripts.write_reference import FOLDER, commands_page, each_command, python_page, sql_page
from tests.docs.page import PAGES, ROOT
from textsim_db import aio

AGAIN = "to write it again: python -m scripts.write_reference"


def test_the_commands() -> None:
    assert (FOLDER / "commands.md").read_text(encoding="utf-8") == commands_page(), AGAIN


def test_sql(database_url: str) -> None:
    assert (FOLDER / "sql.md").read_text(encoding="utf-8") == sql_page(database_url), AGAIN


def test_python() -> None:
    pytest.importorskip("pyspark")  # the page has its functions as well
    assert (FOLDER / "python.md").read_text(encoding="utf-8") == python_page(), AGAIN


def test_a_page_shows_each_method_function_and_command() -> None:
    shown = [page for page in PAGES if FOLDER not in page.parents]
    shown += (ROOT / "docs" / "playground").glob("*.js")
    pages = "\n".join(page.read_text("utf-8") for page in shown)
    members = vars(aio.Corpus).items()
    methods = [
        name for name, member in members if name[0] != "_" and not isinstance(member, property)
    ]
    missing = [name for name in methods if not re.search(rf"[`.]{name}[`(]", pages)]
    sql = (FOLDER / "sql.md").read_text("utf-8")
    functions = re.findall(r"^### (?:view |table )?(textsim\.\w+)", sql, re.M)
    missing += [name for name in functions if not re.search(rf"\b{name}\b", pages)]
    commands = [name for name, command in each_command() if not hasattr(command, "commands")]
    missing += [f"textsim {name}" for name in commands if f"textsim {name}" not in pages]
    assert missing == []


def test_the_pages_show_the_recorded_figures() -> None:
    command = [sys.executable, "-m", "scripts.figures", "--check"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, f"{checked.stdout}{checked.stderr}\nrun: make figures"
    assert ROOT / "README.md" in figures.PAGES
