"""Commands that load documents keep the memory that they free."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import NEWS, Textsim
from textsim_db.cli import progress

ALLOCATE = """
import resource, sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from textsim_db.cli.memory import keep_freed_memory

if sys.argv[1] == "kept":
    assert keep_freed_memory()

def fill(_):
    arrays = [np.ones(10_000, np.uint64) for _ in range(300)]
    return len(arrays)

with ThreadPoolExecutor(1) as pool:
    list(pool.map(fill, range(3)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    list(pool.map(fill, range(10)))
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def fresh_pages(way: str) -> int:
    """Return the pages that a thread gets from the system while it fills the same arrays again."""
    command = [sys.executable, "-c", ALLOCATE, way]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="mallopt() is Linux's")
def test_a_thread_gets_its_pages_again() -> None:
    assert fresh_pages("kept") < fresh_pages("returned") / 2


@pytest.mark.parametrize("command", ["index", "dedupe"])
def test_commands_that_load_keep_memory(
    textsim: Textsim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(progress, "keep_freed_memory", lambda: calls.append(command))
    path = tmp_path / "news.jsonl"
    path.write_text(
        "".join(json.dumps({"id": key, "text": text}) + "\n" for key, text in NEWS.items()),
        encoding="utf-8",
    )
    if command == "index":
        textsim("index", "news", str(path), "--create")
    else:
        textsim("dedupe", str(path), "-o", str(tmp_path / "unique.jsonl"))
    assert calls == [command]
