"""progress=True shows a bar."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

import textsim_db as ts
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
