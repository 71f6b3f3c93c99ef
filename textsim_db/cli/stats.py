"""textsim stats: what is in a corpus."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Annotated

import typer

from textsim_db.cli.common import (
    CorpusName,
    DatabaseUrl,
    LanguageLimit,
    check_output,
    complain,
    connect,
    shown,
    whole_number,
)
from textsim_db.cli.output import Format, FormatOption, console, table
from textsim_db.cli.progress import counting
from textsim_db.errors import ConfigurationError

if TYPE_CHECKING:
    from textsim_db.results import Statistics

_BAR = 40


def stats(
    corpus: CorpusName,
    words: Annotated[
        int,
        typer.Option(parser=whole_number, metavar="NUMBER", help="Name so many frequent words."),
    ] = 10,
    sample: Annotated[
        int,
        typer.Option(
            parser=whole_number,
            metavar="NUMBER",
            help="Compare so many documents with their candidates.",
        ),
    ] = 1000,
    seed: Annotated[
        int, typer.Option(parser=whole_number, metavar="NUMBER", help="Seed of the sample.")
    ] = 1,
    plot: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Draw it into a file ending in .svg or .png."),
    ] = None,
    language: LanguageLimit = None,
    form: FormatOption = Format.TABLE,
    database_url: DatabaseUrl = None,
) -> None:
    """Count what is in a corpus: documents, words, similarities, buckets, bytes.

    All documents are read. The similarities are those of a sample of them to all their candidates,
    the documents that share a bucket.

    Example: `textsim stats news --plot news.svg`
    """
    from textsim_db.sketch import recall_plots

    if form is Format.CSV:
        raise ConfigurationError("the statistics are no table; take --format jsonl")
    if plot is not None:
        recall_plots.check_file(plot)
        check_output(plot)
    with connect(database_url) as db:
        opened = db.corpus(corpus)
        with counting("reading", "documents") as progress:
            found = opened.statistics(words, sample, seed, progress, language)
    if form is Format.TABLE:
        _show(found)
    else:
        print(json.dumps(dataclasses.asdict(found), ensure_ascii=False))
    if plot is not None:
        recall_plots.corpus(plot, corpus, found)
        complain(f"drawn: {shown(plot)}")


def _show(found: Statistics) -> None:
    from rich.text import Text

    out = console()
    total = sum(found.storage.values())
    each = total / found.documents if found.documents else 0.0
    rows = [
        ("documents", f"{found.documents:,}"),
        ("of them without words", f"{found.empty:,}"),
        ("words", f"{found.words:,}"),
        ("distinct words", f"{found.vocabulary:,}"),
        ("words of a document: least, median, most", _lengths(found)),
        ("buckets", f"{sum(number for _, number in found.buckets):,}"),
        ("of them with several documents", f"{_shared(found):,}"),
        ("documents in the fullest", f"{found.buckets[-1][0] if found.buckets else 0:,}"),
        ("candidates of a document", f"{found.candidates / max(found.sampled, 1):.3g}"),
        *((f"bytes of {name}", f"{size:,}") for name, size in found.storage.items()),
        ("bytes a document, all included", f"{each:,.0f}"),
    ]
    out.print(table(("of the corpus", ""), rows))
    if found.languages:
        out.print(table(("language", "documents"), list(found.languages.items())))
    if found.frequent:
        out.print(table(("frequent word", "occurrences", "documents"), found.frequent))
    if found.growth:
        out.print(table(("documents", "words", "distinct words"), found.growth[::-1][::5][::-1]))
    out.print(Text("\n".join(_bars(found))))


def _lengths(found: Statistics) -> str:
    return ", ".join(f"{found.lengths[percentile]:,}" for percentile in (0, 50, 100))


def _shared(found: Statistics) -> int:
    return sum(number for size, number in found.buckets if size > 1)


def _bars(found: Statistics) -> list[str]:
    """Return the similarities of candidates in steps of 0.05."""
    steps = [sum(found.similarities[i : i + 5]) for i in range(0, 100, 5)]
    most = max(*steps, 1)
    return [
        f"similarity of the candidates of {found.sampled:,} documents",
        *(
            f"{i / 20:.2f} to {(i + 1) / 20:.2f}  {'█' * round(_BAR * n / most):<{_BAR}} {n:,}"
            for i, n in enumerate(steps)
        ),
    ]
