"""A terminal in the place of standard error."""

from __future__ import annotations

import io

import pytest


class Terminal(io.StringIO):
    """Remembers what is written to it."""

    def isatty(self) -> bool:
        return True


def replace_standard_error(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Return a terminal of 120 columns that stands in for standard error."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return terminal
