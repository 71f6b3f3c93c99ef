"""The order of functions in the files of sql/schema/."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FILES = sorted((Path(__file__).parents[2] / "sql" / "schema").glob("*.sql"))
FUNCTION = re.compile(r"^CREATE (?:FUNCTION|PROCEDURE) textsim\.(\w+)", re.M)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_private_functions_come_first(file: Path) -> None:
    """Each kind stands under a heading; the name of a private function begins with an underscore."""
    text = file.read_text(encoding="utf-8")
    private, heading, public = text.partition("-- Public functions\n")
    assert text.startswith("-- ")
    assert all(name.startswith("_") for name in FUNCTION.findall(private))
    assert not any(name.startswith("_") for name in FUNCTION.findall(public))
    assert ("-- Private functions\n" in private) == bool(FUNCTION.findall(private))
    assert bool(heading) == bool(FUNCTION.findall(public))
