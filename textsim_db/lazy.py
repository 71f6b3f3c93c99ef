"""Modules that are imported when they are first used: nobody pays for a room that they do not enter.

A module names its lazy imports twice: for type checkers under TYPE_CHECKING, and with lazy().
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class _LazyModule:
    """Stands for a module that may not be imported yet."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


def lazy(name: str) -> Any:
    """Return a stand-in for a module, which imports the module when an attribute is read."""
    return _LazyModule(name)
