"""The walkthrough's steps give what it says they give."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.one_server

PAGE = Path(__file__).parents[2] / "docs" / "walkthrough.md"
STEPS = re.compile(r"^```python\n(.*?)^```\n\n^```text\n(.*?)^```$", re.S | re.M)


def test_every_step(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTSIM_DATABASE_URL", database_url)
    text = PAGE.read_text("utf-8")
    steps = STEPS.findall(text)
    assert len(steps) == text.count("```python") == text.count("```text") > 8
    names: dict[str, Any] = {}
    for code, expected in steps:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(code, PAGE.name, "exec", dont_inherit=True), names)
        assert out.getvalue() == expected, code
