"""The bar of long commands on a terminal."""

from __future__ import annotations

import pytest

from tests.support.terminal import replace_standard_error
from textsim_db.cli import progress
from textsim_db.results import AddReport


def test_a_known_total(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = replace_standard_error(monkeypatch)
    with progress.progress("checking", "documents") as show:
        show(5_000, 20_000)
    assert "checking" in terminal.getvalue()
    assert "5,000 of 20,000 documents" in terminal.getvalue()


def test_an_unknown_total(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = replace_standard_error(monkeypatch)
    with progress.progress("indexing", "rows") as show:
        show(5_000)
    assert "5,000 rows, " in terminal.getvalue()


def test_the_share_of_bytes_that_a_load_has_read(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = replace_standard_error(monkeypatch)

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
