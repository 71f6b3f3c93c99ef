"""Modules that are imported when they are first used, so that commands start fast.

A module declares a lazy import twice: under TYPE_CHECKING for type checkers, and with lazy().
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class _LazyModule:
    """Represents a module until an attribute is read; then the module replaces it."""

    def __init__(self, name: str, namespace: dict[str, Any]) -> None:
        self._name = name
        self._namespace = namespace

    def __getattr__(self, attribute: str) -> Any:
        module = import_module(self._name)
        names = [name for name, value in self._namespace.items() if value is self]
        self._namespace.update(dict.fromkeys(names, module))
        return getattr(module, attribute)


def lazy(name: str, namespace: dict[str, Any]) -> Any:
    """Return a stand-in for the module with this name; namespace: the globals() that hold it."""
    return _LazyModule(name, namespace)
