"""Generated parts of the pages are current: commands, SQL, and the figures of benchmarks."""

from __future__ import annotations

import subprocess
import sys

import pytest

from scripts.figures import PAGES, Figures, table
from scripts.sql_reference import sql_page
from scripts.write_reference import FOLDER, commands_page
from tests.docs.page import ROOT

AGAIN = "to write it again: python -m scripts.write_reference"


def test_the_commands() -> None:
    assert (FOLDER / "commands.md").read_text(encoding="utf-8") == commands_page(), AGAIN


def test_sql(database_url: str) -> None:
    assert (FOLDER / "sql.md").read_text(encoding="utf-8") == sql_page(database_url), AGAIN


def test_the_pages_show_the_recorded_figures() -> None:
    command = [sys.executable, "-m", "scripts.figures", "--check"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, f"{checked.stdout}{checked.stderr}\nrun: make figures"
    assert ROOT / "README.md" in PAGES


def test_an_unknown_figure_or_table_is_named() -> None:
    with pytest.raises(LookupError, match=r"no figure scale\.x; there are: y"):
        "{scale.x}".format(scale=Figures("scale", {"y": 1}))
    with pytest.raises(LookupError, match="no table x; there are: against, "):
        table("x")


def test_a_figure_is_found_by_its_path() -> None:
    scale = Figures("scale", {"d10": {"load_s": 1.25}})
    assert f"{scale.d10.load_s:.1f} s" == "1.2 s"
