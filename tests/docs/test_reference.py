"""The reference pages agree with the help of the commands and with the catalog."""

from __future__ import annotations

from scripts.sql_reference import sql_page
from scripts.write_reference import FOLDER, commands_page

AGAIN = "to write it again: python -m scripts.write_reference"


def test_the_commands() -> None:
    assert (FOLDER / "commands.md").read_text(encoding="utf-8") == commands_page(), AGAIN


def test_sql(database_url: str) -> None:
    assert (FOLDER / "sql.md").read_text(encoding="utf-8") == sql_page(database_url), AGAIN
