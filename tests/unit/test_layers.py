"""Imports between the modules of the tests, their docstrings, and the constants of the package."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
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


def test_a_constant_of_the_package_has_one_meaning() -> None:
    modules: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "textsim_db").rglob("*.py")):
        for name in _constants(ast.parse(path.read_text("utf-8"))):
            modules[name].append(path.stem)
    assert len(modules) > 300
    assert {name: found for name, found in modules.items() if len(found) > 1} == {}


def _constants(module: ast.Module) -> list[str]:
    """Return the public names in capitals that a module assigns."""
    targets: list[ast.expr] = []
    for statement in module.body:
        targets += getattr(statement, "targets", [getattr(statement, "target", statement)])
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return [name for name in names if name.isupper() and not name.startswith("_")]
