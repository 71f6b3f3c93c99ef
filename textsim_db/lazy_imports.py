"""Modules that are imported when they are first used: nobody pays for a room that they do not enter.

A module names its lazy imports twice: for type checkers under TYPE_CHECKING, and with lazy().
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any


class _LazyModule:
    """Stands for a module, and imports it when an attribute is first read."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> Any:
        if self._module is None:
            self._module = import_module(self._name)
        return getattr(self._module, attribute)


def lazy(name: str) -> Any:
    """Return a stand-in for the module of that name."""
    return _LazyModule(name)
