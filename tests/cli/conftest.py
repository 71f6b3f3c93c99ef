"""A corpus for the tests of commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.commands import NEWS, Textsim


@pytest.fixture
def news(textsim: Textsim) -> Textsim:
    """Run a command in this process on a database with the corpus "news"."""
    lines = (json.dumps({"id": key, "text": text}) for key, text in NEWS.items())
    Path("news.jsonl").write_text("\n".join(lines))
    result = textsim("index", "news", "news.jsonl", "--create")
    assert result.stdout == ""
    assert result.stderr.startswith("4 added, 0 replaced, 0 unchanged; ")
    return textsim
