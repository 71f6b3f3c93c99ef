"""textsim compare: two texts by every measure, and where they differ."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from textsim_db.cli.common import (
    DatabaseUrl,
    check_output,
    complain,
    connect,
    count,
    whole_number,
)
from textsim_db.cli.output import Format, FormatOption, console, table, write
from textsim_db.errors import ConfigurationError, InputError, shown

if TYPE_CHECKING:
    from rich.text import Text

    from textsim_db.diff.explanation import Explanation

_NAME = 60
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="A file, a text, or a key.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The one to compare it with.")],
    corpus: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A and B are keys of documents of this corpus."),
    ] = None,
    shingle: Annotated[
        str | None,
        typer.Option(
            metavar="word:N|char:N", help="What sets are made of. Default: word:3, or the corpus's."
        ),
    ] = None,
    shingles: Annotated[
        int,
        typer.Option(
            "--shingles",
            parser=whole_number,
            metavar="NUMBER",
            help="Show so many shingles of each.",
        ),
    ] = 5,
    html: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Write a page with both texts side by side."),
    ] = None,
    form: FormatOption = Format.TABLE,
    database_url: DatabaseUrl = None,
) -> None:
    """Compare two texts by every measure of the field, and show where they differ.

    A and B are two files ("-" is standard input), two texts, or with --corpus the keys of two
    documents. Of documents only the words are stored: they are shown in lower case. There is a
    warning where texts differ only in numbers, dates or negations, so that both may have to be kept.

    Examples: `textsim compare old.txt new.txt --html differences.html`,
    `textsim compare "a text" "another text"`, `textsim compare key1 key2 --corpus news`
    """
    from textsim_db.diff import html_page
    from textsim_db.diff.explanation import explain

    if shingles < 0:
        raise typer.BadParameter(f"{shingles} is too low; expected 0 or more")
    if html is not None:
        _check_page(html, a, b)
    if corpus is None:
        texts = _texts(a, b)
        found = explain(*texts, shingle=shingle or "word:3")
    else:
        if shingle is not None:
            raise ConfigurationError("--shingle is for texts; a corpus has its own")
        with connect(database_url) as db:
            found = db.corpus(corpus).explain(a, b)
    if html is not None:
        page = html_page.comparison(found, _shortened(a), _shortened(b))
        try:
            Path(html).write_bytes(page.encode("utf-8", "replace"))
        except OSError as error:
            raise InputError(f"{html}: cannot be written: {error.strerror}") from error
    if form is Format.TABLE:
        _show(found, shingles)
    elif form is Format.CSV:
        write(("measure", "value"), found.measures.items(), form)
    else:
        print(json.dumps(dataclasses.asdict(found), ensure_ascii=False))
    if found.distinctions:
        complain(html_page.warning(found.distinctions))


def _texts(a: str, b: str) -> tuple[str, str]:
    """Return the texts of two files, or what was given where neither is one."""
    from textsim_db.files.read_documents import read_text

    are_files = [_is_file(name) for name in (a, b)]
    if not any(are_files):
        complain("compared as texts: there are no files of these names")
        return a, b
    for name, is_file in zip((a, b), are_files, strict=True):
        if not is_file:
            raise InputError(f"{_shortened(name)}: there is no such file")
    if a == b == "-":
        raise InputError('standard input, "-", is one text; two were expected')
    return read_text(a), read_text(b)


def _is_file(name: str) -> bool:
    try:
        return name == "-" or Path(name).is_file() or Path(name).is_fifo()
    except (OSError, ValueError):
        return False  # a text too long for a name, or with NUL


def _shortened(name: str) -> str:
    return shown(name if len(name) <= _NAME else f"{name[: _NAME - 3]}...")


def _check_page(html: str, *inputs: str) -> None:
    check_output(html)
    for name in inputs:
        if _is_file(name) and Path(html).exists() and Path(html).samefile(name):
            raise InputError(f"{shown(html)}: the page would overwrite what is compared")


def _printable(text: str) -> str:
    """Return a text that sends nothing to a terminal but itself."""
    return _CONTROL.sub("\ufffd", text)


def _show(found: Explanation, shingles: int) -> None:
    from rich.text import Text

    from textsim_db.diff.html_page import measure_rows

    out = console()
    out.print(_differences(found))
    out.print()
    out.print(table(("measure", "value"), measure_rows(found)))
    for name, some in (
        ("shared", found.shared),
        ("only in the first", found.only_a),
        ("only in the second", found.only_b),
    ):
        if not some:
            out.print(f"no shingles {name}")
            continue
        more = f", ... {len(some) - shingles:,} more" if len(some) > shingles else ""
        quoted = ", ".join(f'"{shingle}"' for shingle in some[:shingles])
        out.print(Text(f"{count(len(some), 'shingle')} {name}: {quoted}{more}"))


def _differences(found: Explanation) -> Text:
    """Return both texts as one: what was removed in [-brackets-], and what was added in {+braces+}."""
    from rich.text import Text

    from textsim_db.diff.word_diff import Change

    made = Text()
    for change, a, b in found.parts:
        if change is Change.SAME:
            made.append(_printable(b))
            continue
        space = (a or b)[len((a or b).rstrip()) :]
        if a:
            made.append(f"[-{_printable(a.rstrip())}-]", "red")
        if b:
            made.append(f"{{+{_printable(b.rstrip())}+}}", "green")
        made.append(space)
    return made
