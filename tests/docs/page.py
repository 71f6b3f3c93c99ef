"""A page of Markdown in, its snippets with the outputs shown out. Runs nothing.

```console        lines that begin with `$ ` are commands; the lines below a command are its output
```python, ```sql the ```text block that directly follows is the output
```sh             run; the output is not shown
<!-- run: sh ... -->            run as well, and no reader sees it; also python and sql
<!-- not run: the reason -->    stands on the line before a block that cannot be run
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*).*?\n(?P<code>(?:.*\n)*?)(?P=indent)```$"
    r"|^ *<!-- run: (?P<hidden>sh|python|sql)\n(?P<hidden_code>(?:.*\n)*?.*)\n-->$"
    r"|^ *<!-- (?P<not_run>not run: .*\S.*) -->$",
    re.M,
)
_COMMAND = re.compile(r"\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)")


class PageError(Exception):
    """A page has a block that is neither run, nor an output, nor marked as not run."""


@dataclass(frozen=True)
class Snippet:
    """One piece of code."""

    language: str
    """console (one command), sh, python or sql."""
    code: str
    line: int
    """The first line of the code, from 1."""
    expected: str | None = None
    """The output shown, or None if the page has no place for it."""
    first: int = 0
    """The line of the page at which the output starts, from 0."""
    last: int = 0
    """The line after the output."""
    indent: str = ""
    """The start of each line of the output."""


def read_snippets(path: Path) -> list[Snippet]:
    """Return the snippets of a page in their order.

    Raises PageError if a block of the page is not run although no comment says why.
    """
    text = path.read_text("utf-8")
    snippets: list[Snippet] = []
    before: re.Match[str] | None = None
    for block in _BLOCK.finditer(text):
        line = _line(block)
        gap = text[before.end() : block.start()] if before else ""
        code = re.sub(f"^{block['indent']}", "", block["code"] or "", flags=re.M)
        if block["hidden"]:
            snippets.append(Snippet(block["hidden"], block["hidden_code"], line))
        elif block["not_run"] or (before and before["not_run"] and gap == "\n"):
            pass
        elif block["language"] == "console":
            snippets += _commands(code, line, block["indent"])
        elif block["language"] in ("python", "sql", "sh"):
            snippets.append(Snippet(block["language"], code, line))
        elif (
            block["language"] == "text"
            and before
            and before["language"] in ("python", "sql")
            and not gap.strip()
        ):
            if snippets and snippets[-1].line == _line(before):
                first, last, indent = line - 1, line - 1 + code.count("\n"), block["indent"]
                snippets[-1] = replace(
                    snippets[-1], expected=code, first=first, last=last, indent=indent
                )
        else:
            raise PageError(
                f"{place(path, line)}: a block of {block['language']!r} is not run and is no output: "
                "write the line <!-- not run: reason --> before it"
            )
        before = block
    return snippets


def place(path: Path, line: int) -> str:
    """Return file:line, from the root of the project if the file is in it."""
    return f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{line}"


def _line(block: re.Match[str]) -> int:
    """Return the number, from 1, of the first line inside a block."""
    return block.string.count("\n", 0, block.start()) + 2


def _commands(code: str, line: int, indent: str) -> list[Snippet]:
    """Cut a console block into commands; a line that ends with a backslash continues."""
    commands = []
    for command in _COMMAND.finditer(code):
        start = line + code.count("\n", 0, command.start())
        first = line - 1 + code.count("\n", 0, command.start(2))
        last = first + command[2].count("\n")
        shown = command[2].removesuffix("\n")
        commands.append(Snippet("console", command[1], start, shown, first, last, indent))
    return commands
