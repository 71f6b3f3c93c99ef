"""Imports between the modules of the tests, and their docstrings."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
IMPORT = re.compile(
    r"^ *(?:from|import) (?:\.|tests\.(?:\S+[. ](?:import )?)?test_).*", re.MULTILINE
)
"""A relative import, or an import of a test module."""


def test_no_module_imports_a_test_module() -> None:
    """Shared helpers belong in tests/support, or in a program such as tests.crash."""
    assert IMPORT.match("from tests.cli.test_help import a")
    assert IMPORT.match("    from tests.cli import test_help")
    imports = [
        f"{path.relative_to(ROOT)}: {line}"
        for folder in ("tests", "benchmarks", "scripts")
        for path in (ROOT / folder).rglob("*.py")
        for line in IMPORT.findall(path.read_text("utf-8"))
        if path.stem not in line  # a program that the test runs may import the test's own module
    ]
    assert imports == []


def test_every_test_module_has_a_docstring() -> None:
    modules = [path for path in (ROOT / "tests").rglob("*.py") if path.stat().st_size]
    assert [str(p) for p in modules if not p.read_text("utf-8").startswith('"""')] == []
