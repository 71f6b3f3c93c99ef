"""Imports between the modules of the tests, their docstrings, and the constants of the package."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).parents[2]
IMPORT = re.compile(r"(?m)^ *(?:from|import) (?:\.|tests\.(?:\S+[. ](?:import )?)?test_).*")
"""A relative import, or an import of a test module."""
NAMES_SCOPES = (
    "_check_document _check_list _document_fault _duplicates_to_merge _index_change _index_row "
    "_pairs _pairs_query _part _part_of _scope_fault _store_form _texts_to_merge _twins _write_document "
    "_write_or_raise"
)
"""The private functions of the schema that check a scope, or store it with a document."""


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


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def test_a_constant_and_a_class_of_the_package_have_one_meaning() -> None:
    """Only the classes of aio have the names of the classes that they are derived from."""
    modules: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "textsim_db").rglob("*.py")):
        tree = _parsed(path)
        for name, value in _constants(tree):
            if not name.startswith("_") or _is_number(value):
                modules[name].append(path.stem)
        for statement in tree.body:
            if isinstance(statement, ast.ClassDef) and path.parent.name != "aio":
                modules[statement.name].append(path.stem)
    assert len(modules) > 1000
    assert {name: found for name, found in modules.items() if len(found) > 1} == {}


HEADS = {
    "no database": ("textsim_db.db", "psycopg", "sqlalchemy"),
    "no corpus or database": ("textsim_db.corpus", "textsim_db.db", "psycopg", "sqlalchemy"),
    "no files": ("textsim_db.files",),
    "no signatures": ("textsim_db.sketch",),
    "no texts": ("textsim_db.text",),
    "no measures": ("textsim_db.measures",),
    "no numpy": ("numpy",),
    "never searches": ("textsim_db.read.find_candidates", "textsim_db.read.search"),
    "never writes.": ("textsim_db.write",),
    "never writes sql": ("psycopg",),
    "never computes a signature": ("textsim_db.sketch.sketch_texts",),
    "never computes a similarity": ("textsim_db.compare", "textsim_db.measures"),
    "never estimates": ("textsim_db.sketch.fast_similarity",),
}
"""The modules that a package must not import, by words of which its head has at least one."""


def test_the_heads_of_packages_are_true() -> None:
    faults, used = [], set()
    for head in sorted((ROOT / "textsim_db").glob("*/__init__.py")):
        words = " ".join((ast.get_docstring(_parsed(head)) or "").lower().split())
        promises = [each for each in HEADS if each in words]
        faults += [] if promises else [f"{head.parent.name} promises nothing"]
        used.update(promises)
        for path in sorted(head.parent.glob("*.py")):
            imported = list(_imported(_parsed(path)))
            faults += [
                f"{head.parent.name}/{path.name}: {promise}, and imports {name}"
                for promise in promises
                for name in imported
                if any(f"{name}.".startswith(f"{module}.") for module in HEADS[promise])
            ]
    assert faults == []
    assert used == {*HEADS}


def _imported(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)


def test_no_files_of_a_package_import_each_other() -> None:
    """This includes imports through other files, for a type, and in a function."""
    paths = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (ROOT / "textsim_db").rglob("*.py")
    }
    imports = {
        module: {
            name if name in paths else name.rpartition(".")[0] for name in _imported(_parsed(path))
        }
        & paths.keys() - {module}
        for module, path in paths.items()
    }
    assert sum(map(len, imports.values())) > 1000
    while ends := {module for module in imports if not _is_between(module, imports)}:
        imports = {each: names - ends for each, names in imports.items() if each not in ends}
    assert imports == {}


def _is_between(module: str, imports: dict[str, set[str]]) -> bool:
    return bool(imports[module]) and any(module in names for names in imports.values())


def test_the_engine_knows_no_scopes() -> None:
    """Below the interface a document has a part, a number; only what stores it names its scope."""
    folders = (ROOT / "textsim_db" / name for name in ("sketch", "compare", "cluster"))
    modules = [path for folder in folders for path in folder.rglob("*.py")]
    assert len(modules) > 15
    named = re.compile(r"\bscopes?\b")
    assert [path.name for path in modules if named.search(path.read_text("utf-8"))] == []
    schema = (ROOT / "sql" / "schema").glob("*.sql")
    functions = re.findall(
        r"FUNCTION textsim\.(_\w+)\(([^$]*?)\)\n?\s*RETURNS",
        "".join(path.read_text("utf-8") for path in schema),
    )
    assert len(functions) > 200
    takes_scope = {name for name, arguments in functions if re.search(r"\bscopes? text", arguments)}
    assert " ".join(sorted(takes_scope)) == NAMES_SCOPES


def test_the_schema_begins_with_its_contents() -> None:
    files = sorted((ROOT / "sql" / "schema").glob("*.sql"))
    contents = files[0].read_text("utf-8").partition("CREATE")[0]
    ranges = re.findall(r"\b(\d\d)(?:(?: to | and )(\d\d))?\b", contents)
    listed = [n for first, last in ranges for n in range(int(first), int(last or first) + 1)]
    numbers = {int(path.name[:2]) for path in files}
    assert sorted(n for n in listed if n in numbers) == sorted(numbers)


def test_the_files_that_contributing_names_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    folders = [path.name for path in (ROOT / "textsim_db").iterdir() if path.is_dir()]
    modules = re.findall(rf"`((?:{'|'.join(folders)})/\w+)(?:\.py)?`", text)
    named = {f"textsim_db/{name}.py" for name in modules}
    named |= {f"sql/schema/{name}" for name in re.findall(r"`(\d\d_\w+\.sql)`", text)}
    assert len(named) > 80
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def _constants(module: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names in capitals that a module assigns, and what it assigns to them."""
    for statement in module.body:
        if not (isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None):
            continue
        if ast.unparse(statement.value).startswith("Operation("):
            continue  # a command, which has the name of its method
        for target in getattr(statement, "targets", [getattr(statement, "target", None)]):
            several = isinstance(target, ast.Tuple)
            values = getattr(statement.value, "elts", None) if several else [statement.value]
            for name, value in zip_longest(target.elts if several else [target], values or ()):
                if isinstance(name, ast.Name) and name.id.isupper():
                    yield name.id, value or statement.value


def _is_number(value: ast.expr) -> bool:
    """Return whether a value is a number, or computed from one without any text."""
    parts = [part.value for part in ast.walk(value) if isinstance(part, ast.Constant)]
    return bool(parts) and all(isinstance(part, int | float) for part in parts)


def test_a_process_of_a_test_finds_compiled_modules() -> None:
    name = "PYTHONDONTWRITEBYTECODE"
    command = f"import sys, os, tests; print(sys.dont_write_bytecode, {name!r} in os.environ)"
    words, variables = [sys.executable, "-c", command], {**os.environ, name: "1"}
    assert subprocess.check_output(words, cwd=ROOT, env=variables) == b"False False\n"
