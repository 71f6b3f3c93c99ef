"""Modules that are imported when they are first used, so that commands start fast.

A module declares a lazy import twice: under TYPE_CHECKING for type checkers, and with lazy(). The names
of a package that are imported late stand in its stub, __init__.pyi, and nowhere else.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
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


def names_of_stub(
    package: str, file: str
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return __all__, __getattr__ and __dir__ of a package; the stub beside `file` imports its names."""
    text = Path(file).with_suffix(".pyi").read_text("utf-8")
    modules = {
        name: module
        for module, names in re.findall(r"^from (\S+) import (\([^)]*|.*)", text, re.MULTILINE)
        for name in re.findall(r"(\w+) as", names)
    }

    def getattr_(name: str) -> Any:
        if name in modules:
            return getattr(import_module(modules[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return sorted(modules), getattr_, lambda: sorted({*vars(sys.modules[package]), *modules})
