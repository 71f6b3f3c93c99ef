"""The real corpora in ../shared/data. A test that reads one of them is skipped without it."""

from __future__ import annotations

import gzip
import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parents[2].parent / "shared" / "data"


def records(name: str, most: int | None = None) -> list[dict[str, Any]]:
    """Return the first records of a corpus, such as "arxiv"; without a number, all of them."""
    path = DATA / f"{name}.jsonl.gz"
    if not path.exists():
        pytest.skip(f"needs {path.name} in ../shared/data")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in islice(lines, most)]
