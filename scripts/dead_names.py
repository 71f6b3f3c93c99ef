"""List names that are defined once and used nowhere, and pictures that no page shows.

    python -m scripts.dead_names

A name of the package or of SQL is used if their code, an example or the code of a page has it a second
time; a name of the tests, the benchmarks or the scripts, if any code does. Comments use no name.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("textsim_db/", "sql/", "migrations/", "docs/", "examples/", "scripts/", "CONTRIBUTING")
COMMENTS_OF_SQL = (
    r"--.*|\bDROP FUNCTION[^;]*;"
    r"|\b(?:COMMENT|GRANT [^;]*|REVOKE [^;]*) ON (?:FUNCTION|PROCEDURE)[^;]*;"
)
CALLED_BY_OTHERS = re.compile(
    r"__\w+__|_|(?:test|pytest|handle|do|on|_mypy)_\w+|collect_ignore_glob|daemon_threads|emit|get_key"
    r"|log_message|readinto|coerce|format_commands|KEEP|QUEUE"
)
"""Names that libraries and checkers look for, and members of enums that users give as a text."""


def names_of(path: str, text: str) -> tuple[set[str], list[str]]:
    """Return the names that a file defines, and all words of its code, these too."""
    defined: set[str] = set()
    if path.endswith(".md"):
        text = " ".join(re.findall(r"`+[^`]*`|!\[.*|<img.*", text))
    elif path.endswith(".sql"):
        text = re.sub(COMMENTS_OF_SQL, "", text)
        defined.update(re.findall(r"(?:FUNCTION|PROCEDURE) textsim\.(\w+)", text))
    elif path.endswith(".py"):
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                defined.add(node.id)
            decorators = getattr(node, "decorator_list", None)
            if decorators is not None and not any(
                isinstance(each, ast.Call) for each in decorators
            ):
                defined.add(node.name)  # type: ignore[attr-defined]  # app.command() would register it
            if isinstance(body := getattr(node, "body", None), list):
                node.body = [each for each in body if not _is_docstring(each)]  # type: ignore[attr-defined]
        text = ast.unparse(tree)
    return defined, re.findall(r"\w+", text)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def main() -> int:
    """Print the names; return 1 if there is one."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    paths = [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]
    code = {
        path: names_of(path, data.decode())
        for path in paths
        if b"\0" not in (data := (ROOT / path).read_bytes())
    }
    everywhere = Counter(word for _, words in code.values() for word in words)
    product = Counter(
        word for path, (_, words) in code.items() if path.startswith(PRODUCT) for word in words
    )
    dead = [
        f"{path}: {name}"
        for path, (defined, _) in code.items()
        for name in sorted(defined)
        if (product if path.startswith(("textsim_db/", "sql/")) else everywhere)[name] == 1
        and not CALLED_BY_OTHERS.fullmatch(name)
    ]
    pages = [(ROOT / path).read_text("utf-8") for path in paths if path.endswith((".md", ".yml"))]
    pictures = (Path(path).name for path in paths if path.startswith("docs/images/"))
    dead += [f"docs/images/{name}: no page shows it" for name in pictures if name not in str(pages)]
    print(*dead, sep="\n")
    return bool(dead)


if __name__ == "__main__":
    raise SystemExit(main())
