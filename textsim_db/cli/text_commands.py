"""textsim compare and identify: texts without a corpus."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import typer

from textsim_db.cli.messages import Refusals, print_message, print_object
from textsim_db.cli.opening import connect, is_file_name, read_one_text
from textsim_db.cli.options import check_output
from textsim_db.cli.output import Format, console, table, write
from textsim_db.cli.passage_commands import storable
from textsim_db.cli.progress_lines import counted, speed
from textsim_db.errors import ConfigurationError, InputError
from textsim_db.files.file_kinds import FileFormat
from textsim_db.files.records import replacing
from textsim_db.results.shown_values import count, shown
from textsim_db.settings.corpus_settings import DEFAULTS

if TYPE_CHECKING:
    from rich.text import Text

    from textsim_db.measures.explanation import Explanation

_LONGEST_LABEL = 60
_SHOWN_SHINGLES = 5
"""The shingles of each list: shared, only in A, only in B."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def compare(
    a: str,
    b: str,
    /,
    *,
    corpus: str | None = None,
    shingle: str | None = None,
    html: str | None = None,
    form: Format = Format.TABLE,
    database_url: str | None = None,
) -> None:
    """Compare two texts by every measure, and show where they differ.

    A and B are two files ("-" is standard input), two texts, or with --corpus the keys of two
    documents. A corpus stores the words of its documents only: they are shown in lower case. It prints
    the texts as one, with [-removed-] and {+added+} words, and the measures. A warning follows if the
    texts differ only in numbers, numerals, letters, units, dates, negations, symbols or the order of
    their words: both may be worth keeping.

    Args:
        a: A file, "-", a text, or a key.
        b: The file, text or key to compare with A.
        corpus (NAME): A and B are keys of documents of this corpus. Default: A and B are files or texts.
        shingle (word:N|char:N): The unit of comparison. Default: word:3, or the corpus's shingle.
        html (PATH): Write an HTML page with both texts side by side.

    Examples:
    - `textsim compare old.txt new.txt --html differences.html`
    - `textsim compare "a text" "another text"`
    - `textsim compare article-17 article-18 --corpus news`

    """
    if html is not None:
        inputs = [("a file that is compared", name) for name in (a, b) if _is_file(name)]
        check_output("--html", html, inputs)
    explanation = _explain(corpus, a, b, shingle, database_url)
    if html is not None:
        _write_page(html, explanation, a, b)
    _write_explanation(explanation, form)


def _explain(
    corpus: str | None, a: str, b: str, shingle: str | None, database_url: str | None
) -> Explanation:
    if corpus is None:
        from textsim_db.measures.explanation import explain

        return explain(*_texts(a, b), shingle=shingle or str(DEFAULTS.shingle))
    if shingle is not None:
        raise ConfigurationError(
            "--shingle and --corpus exclude each other: a corpus has its own shingle"
        )
    with connect(database_url) as db:
        return db.corpus(corpus, on_server=True).explain(a, b)


def _write_page(path: str, explanation: Explanation, a: str, b: str) -> None:
    from textsim_db.review.report_pages import comparison_page

    page = comparison_page(explanation, _shortened(a), _shortened(b))
    with replacing(path) as file:
        file.write(page.encode("utf-8", "replace"))


def _write_explanation(explanation: Explanation, form: Format) -> None:
    from textsim_db.measures import explanation as html_page

    if form is Format.TABLE:
        _show(explanation)
    elif form is Format.CSV:
        write(("measure", "value"), explanation.measures.items(), form)
    else:
        print_object(dataclasses.asdict(explanation))
    if explanation.distinctions:
        print_message(html_page.warning(explanation.distinctions))
    for note in html_page.notes_apart(explanation):
        print_message(note)
    if not any((explanation.shared, explanation.only_a, explanation.only_b)):
        print_message("the texts have no words, so no measure of words says how similar they are")


def _texts(a: str, b: str) -> tuple[str, str]:
    """Return the texts of two files, or both arguments if neither is the name of a file."""
    are_files = [_is_file(name) for name in (a, b)]
    if not any(are_files):
        print_message("A and B are compared as texts: no files have these names")
        return a, b
    for name, is_file in zip((a, b), are_files, strict=True):
        if not is_file:
            raise InputError(
                f"{_shortened(name)}: there is no such file; expected two files or two texts"
                + (', and "-" is standard input' if "-" in (a, b) else "")
            )
    if a == b == "-":
        raise InputError(
            'both A and B are "-"; standard input is one text: name a file for the other'
        )
    return read_one_text(a, "compared"), read_one_text(b, "compared")


def _is_file(name: str) -> bool:
    return name == "-" or is_file_name(name)


def _shortened(name: str) -> str:
    return shown(name if len(name) <= _LONGEST_LABEL else f"{name[: _LONGEST_LABEL - 3]}...")


def _printable(text: str) -> str:
    """Return a text without the control characters that a terminal would obey."""
    return _CONTROL.sub("\ufffd", text)


def _show(explanation: Explanation) -> None:
    from rich.text import Text

    from textsim_db.measures.explanation import measure_rows

    out = console()
    out.print(_differences(explanation))
    out.print()
    out.print(table(("measure", "value"), measure_rows(explanation)))
    for place, shingles in (
        ("shared", explanation.shared),
        ("only in the first", explanation.only_a),
        ("only in the second", explanation.only_b),
    ):
        out.print(Text(_shingle_line(place, shingles)))


def _shingle_line(place: str, shingles: list[str]) -> str:
    if not shingles:
        return f"no shingles {place}"
    hidden = len(shingles) - _SHOWN_SHINGLES
    quoted = ", ".join(f'"{shingle}"' for shingle in shingles[:_SHOWN_SHINGLES])
    rest = f", ... {hidden:,} more" if hidden > 0 else ""
    return f"{count(len(shingles), 'shingle')} {place}: {quoted}{rest}"


def _differences(explanation: Explanation) -> Text:
    """Return both texts as one, with removed words in [-brackets-] and added words in {+braces+}."""
    from rich.text import Text

    from textsim_db.measures.word_diff import Change

    text = Text()
    for change, a, b in explanation.diff:
        if change is Change.SAME and a.split() == b.split():
            text.append(_printable(b))
            continue
        if a:
            text.append(f"[-{_printable(a.rstrip())}-]", "red")
        if b:
            text.append(f"{{+{_printable(b.rstrip())}+}}", "green")
        text.append((a or b)[len((a or b).rstrip()) :])
    return text


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
