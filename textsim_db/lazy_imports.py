"""Names of a package that are imported when they are first used; its stub, __init__.pyi, lists them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


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
