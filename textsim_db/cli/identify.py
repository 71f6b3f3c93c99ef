"""textsim identify: the languages of files and records."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import islice

import typer

from textsim_db.cli.document_commands import speed
from textsim_db.cli.messages import Refusals, print_message
from textsim_db.cli.output import Format, write
from textsim_db.cli.passage_commands import storable
from textsim_db.cli.progress_lines import counted
from textsim_db.errors import InputError
from textsim_db.files.file_kinds import FileFormat
from textsim_db.results.numbers_as_text import count

_NAMED_AT_ONCE = 1000


def identify(
    files: list[str],
    /,
    *,
    form_of_files: FileFormat,
    glob: str = "*",
    key_columns: list[str] | None = None,
    text: str = "text",
    form: Format = Format.TABLE,
) -> None:
    """Name the languages of texts, the most probable first.

    A plain text file is one text, with its path as the key. A row has the key, the code of a language
    (ISO 639), and its confidence: the probability that a part of the text, chosen at random, is in this
    language. A text of several languages has several rows. If a text is too short to say, its row has
    no language. The rows of JSON lines and CSV are written as they come.

    Args:
        files: Files and folders; "-" is standard input, with JSON lines.

    Examples:
    - `textsim identify letter.txt`
    - `textsim identify letters --glob "*.txt" --format csv`
    - `textsim identify articles.jsonl --key nr --text body --json`

    """
    from textsim_db.files.read_documents import Inputs

    refusals = Refusals()
    inputs = Inputs(files, refusals.add, form_of_files, key_columns or ["id"], text, glob=glob)
    start = time.monotonic()
    counts = _IdentifiedTexts()
    texts = counted(
        "identifying", "texts", storable(inputs, refusals), inputs, form is not Format.TABLE
    )
    write(("key", "language", "confidence"), counts.rows(texts), form)
    seconds = time.monotonic() - start
    refusals.show()
    if refusals.count and not counts.texts:
        raise InputError("no text could be read")
    print_message(
        f"{count(counts.texts, 'text')}, {counts.undetermined:,} of them without a language; "
        f"{seconds:.1f} s{speed(counts.texts, seconds)}",
        texts=counts.texts,
        undetermined=counts.undetermined,
    )
    if refusals.count:
        raise typer.Exit(1)


class _IdentifiedTexts:
    """How many texts there are, and how many of them are too short to say."""

    def __init__(self) -> None:
        self.texts = self.undetermined = 0

    def rows(
        self, documents: Iterable[tuple[str, str]]
    ) -> Iterator[tuple[str, str | None, float | None]]:
        """Yield a row for each language of each document."""
        from textsim_db.text.languages import identify_languages

        remaining = iter(documents)
        while batch := list(islice(remaining, _NAMED_AT_ONCE)):
            found = identify_languages(text for _, text in batch)
            for (key, _), languages in zip(batch, found, strict=True):
                self.texts += 1
                self.undetermined += not languages
                for language in languages:
                    yield key, *language
                if not languages:
                    yield key, None, None
