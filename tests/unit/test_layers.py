"""Imports between the modules of the tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"


def imported_modules(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports, and the names that it imports from them."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} imports by a relative name"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_module_imports_a_test_module() -> None:
    """Shared helpers belong in tests/support, or in a program such as tests.crash."""
    importers = {
        f"{path.relative_to(ROOT)} imports {name}"
        for folder in ("tests", "benchmarks", "scripts")
        for path in (ROOT / folder).rglob("*.py")
        for name in imported_modules(path)
        if re.match(r"tests\..*\btest_", name)
    }
    assert importers == set()


def test_every_test_module_has_a_docstring() -> None:
    modules = [path for path in TESTS.rglob("*.py") if path.stat().st_size]
    assert [str(p) for p in modules if not ast.get_docstring(ast.parse(p.read_text("utf-8")))] == []
