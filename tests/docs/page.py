"""A page of Markdown in, its snippets with the outputs shown out. Runs nothing.

```console        lines that begin with `$ ` are commands; the lines below a command are its output
```python, ```sql the ```text block that directly follows is the output
```sh             run; the output is not shown
<!-- run: sh ... -->            run as well, and no reader sees it; also python and sql
<!-- not run: the reason -->    stands on the line before a block that cannot be run
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_HIDDEN = re.compile(r"<!-- run: (sh|python|sql)\n(.*)\n-->\s*", re.S)
_NOT_RUN = re.compile(r"<!-- not run: .*\S.* -->\s*", re.S)


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
    lines = text.splitlines()
    blocks = [t for t in MarkdownIt().parse(text) if t.type in ("fence", "html_block")]
    snippets: list[Snippet] = []
    for position, block in enumerate(blocks):
        before = blocks[position - 1] if position else None
        if block.type == "html_block":
            snippets += _hidden_snippet(block)
        elif before is None or not _is_marked_as_not_run(before, block):
            snippets += _fenced_snippets(
                block, _output_of(block, blocks[position + 1 :], lines), lines
            )
            if _language(block) == "text" and not _is_output(before, block, lines):
                raise PageError(
                    f"{place(path, _line(block))}: no snippet stands before this output"
                )
            if _language(block) not in ("console", "sh", "python", "sql", "text"):
                raise PageError(
                    f"{place(path, _line(block))}: a block of {_language(block)!r} is not run: write "
                    "the line <!-- not run: reason --> before it"
                )
    return snippets


def place(path: Path, line: int) -> str:
    """Return file:line, from the root of the project if the file is in it."""
    return f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{line}"


def _hidden_snippet(block: Token) -> Iterator[Snippet]:
    if hidden := _HIDDEN.fullmatch(block.content):
        yield Snippet(hidden[1], hidden[2], _line(block))


def _fenced_snippets(block: Token, output: Token | None, lines: Sequence[str]) -> Iterator[Snippet]:
    language = _language(block)
    if language == "console":
        yield from _commands(block, lines)
    elif language in ("python", "sql") and output:
        first, last = _inside(output)
        yield Snippet(
            language,
            block.content,
            _line(block),
            output.content,
            first,
            last,
            _indent(output, lines),
        )
    elif language in ("python", "sql", "sh"):
        yield Snippet(language, block.content, _line(block))


def _commands(block: Token, lines: Sequence[str]) -> Iterator[Snippet]:
    """Cut a console block into commands; a line that ends with a backslash continues."""
    start, end = _inside(block)
    content = block.content.splitlines()
    indent = _indent(block, lines)
    first = 0
    while first < len(content):
        last = first
        while content[last].endswith("\\") and last + 1 < len(content):
            last += 1
        output = last + 1
        after = output
        while after < len(content) and not content[after].startswith("$ "):
            after += 1
        command = "\n".join(content[first:output]).removeprefix("$ ")
        shown = "\n".join(content[output:after])
        last_line = min(start + after, end)
        yield Snippet(
            "console", command, start + first + 1, shown, start + output, last_line, indent
        )
        first = after


def _output_of(block: Token, following: Sequence[Token], lines: Sequence[str]) -> Token | None:
    if following and _language(following[0]) == "text" and _is_output(block, following[0], lines):
        return following[0]
    return None


def _is_output(before: Token | None, block: Token, lines: Sequence[str]) -> bool:
    """Decide if a block directly follows a snippet whose output it can be."""
    if before is None or _language(before) not in ("python", "sql"):
        return False
    return not any(line.strip() for line in lines[_lines(before)[1] : _lines(block)[0]])


def _is_marked_as_not_run(before: Token, block: Token) -> bool:
    is_comment = before.type == "html_block" and _NOT_RUN.fullmatch(before.content)
    return bool(is_comment) and _lines(before)[1] == _lines(block)[0]


def _language(block: Token) -> str:
    return (block.info.split() or [""])[0] if block.type == "fence" else ""


def _lines(block: Token) -> tuple[int, int]:
    assert block.map
    return block.map[0], block.map[1]


def _line(block: Token) -> int:
    """Return the number, from 1, of the first line inside a block."""
    return _lines(block)[0] + 2


def _inside(block: Token) -> tuple[int, int]:
    """Return the lines between the two fences of a block, from 0."""
    first, last = _lines(block)
    return first + 1, last - 1


def _indent(block: Token, lines: Sequence[str]) -> str:
    return lines[_lines(block)[0]].split(block.markup)[0]
