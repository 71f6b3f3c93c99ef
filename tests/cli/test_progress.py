"""The bar of long commands on a terminal."""

from __future__ import annotations

import io
import sys

import pytest
from rich.console import Console

from textsim_db.cli import progress
from textsim_db.results import AddReport


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """The output of a terminal that stands in for standard error."""
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, width=120)
    monkeypatch.setattr(progress, "error_console", lambda: console)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    return output


def test_a_known_total(terminal: io.StringIO) -> None:
    with progress.progress("checking", "documents") as show:
        show(5_000, 20_000)
    assert "checking" in terminal.getvalue()
    assert "5,000 of 20,000 documents" in terminal.getvalue()


def test_an_unknown_total(terminal: io.StringIO) -> None:
    with progress.progress("indexing", "rows") as show:
        show(5_000)
    assert "5,000 rows, " in terminal.getvalue()


def test_the_share_of_bytes_that_a_load_has_read(terminal: io.StringIO) -> None:
    class Half:
        bytes_read = 50

        def total_bytes(self) -> int:
            return 100

    with progress.loading(Half(), [("key", "text")] * 3) as load:
        assert len(list(load)) == 3
        load.after_batch(AddReport(added=3))
    assert load.report.received == 3
    assert "3 documents, " in terminal.getvalue()
    assert "━" in terminal.getvalue()
