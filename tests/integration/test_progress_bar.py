"""progress=True shows a bar."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import textsim_db as ts
from tests.support.notebooks import execute, notebook_of
from tests.support.terminal import replace_standard_error

TEXTS = {"a": "the city council approved the new budget", "b": "nothing of the kind"}


def index(db: ts.Database) -> None:
    db.create_corpus("indexed").add_many(TEXTS, progress=True)


def compare(db: ts.Database) -> None:
    frame = pl.DataFrame({"text": list(TEXTS.values())})
    ts.dedupe_frame(frame, text="text", database=db, progress=True)


def rebuild(db: ts.Database) -> None:
    corpus = db.create_corpus("rebuilt")
    corpus.add_many(TEXTS)
    corpus.rebuild(progress=True, threshold=0.5)


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (index, "2 documents"),
        (compare, "2 rows"),
        (rebuild, "2 of 2 documents"),
    ],
)
def test_a_bar_shows_the_progress(
    db: ts.Database,
    work: Callable[[ts.Database], None],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = replace_standard_error(monkeypatch)
    work(db)
    assert expected in terminal.getvalue()


IN_NOTEBOOK = """
import textsim_db
from textsim_db.progress_bar import bar

with textsim_db.connect() as db:
    corpus = db.create_corpus("news")
    report = corpus.add_many({f"k{i}": f"word{i} other words" for i in range(5000)}, progress=True)
with bar("comparing", "documents") as show:
    show(1000, 1000)
report.added
"""


@pytest.mark.more
def test_a_notebook_shows_a_bar_without_widgets(database_url: str, tmp_path: Path) -> None:
    notebook = notebook_of(IN_NOTEBOOK)
    displayed = execute(notebook, tmp_path, TEXTSIM_DATABASE_URL=database_url)
    texts = [each["text/plain"] for each in displayed]
    assert texts[0] == "indexing"
    assert any(
        re.fullmatch(r"comparing: 1,000 of 1,000 documents, [0-9,]+/s", text) for text in texts
    )
    assert any(
        '<progress value="1.0000"></progress>' in each.get("text/html", "") for each in displayed
    )
    # The bars are empty at the end, and nothing warns.
    *bars, result = notebook.cells[0].outputs
    assert [each.data["text/html"] for each in bars] == ["", ""]
    assert result.data["text/plain"] == "5000"
