"""Every notebook of the docs runs, and its stored outputs are those of the run."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from tests.docs.notebook import NOTEBOOKS, executed
from tests.docs.page import ROOT


@pytest.mark.more
@pytest.mark.parametrize("name", [str(path.relative_to(ROOT)) for path in NOTEBOOKS])
def test_the_stored_outputs_are_current(name: str, database_url: str, tmp_path: Path) -> None:
    stored = (ROOT / name).read_text("utf-8")
    now = executed(ROOT / name, tmp_path, database_url)
    if now != stored:
        lines = difflib.unified_diff(
            stored.splitlines(), now.splitlines(), "stored", "now", "", "", 1
        )
        command = f"python -m tests.docs.write_outputs {name}"
        pytest.fail("\n".join([*lines, f"to accept the outputs: {command}"]), pytrace=False)
