"""textsim stats and boilerplate: counts of a corpus, and the shingles that many documents share."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from textsim_db.cli.messages import print_message, print_object
from textsim_db.cli.opening import connect
from textsim_db.cli.operations import Call, Operation, note_unknown_scope
from textsim_db.cli.options import check_plot
from textsim_db.cli.output import Format, console, table, tenths, write
from textsim_db.cli.progress_lines import progress
from textsim_db.errors import ConfigurationError
from textsim_db.results.shown_values import count, shown

if TYPE_CHECKING:
    from textsim_db.results import Statistics


def _show_boilerplate(call: Call) -> None:
    report = call.result
    is_json = call.form is Format.JSONL
    has_clusters = any(each.clusters is not None for each in report.shingles)
    rows = [
        (e.share, *[e.clusters] * has_clusters, e.text, e.keys if is_json else ", ".join(e.keys))
        for e in report.shingles
    ]
    write(("share", *["clusters"] * has_clusters, "shingle", "keys"), rows, call.form)
    print_message(
        f"{count(len(rows), 'shingle')} listed that more than {call.arguments['share']:.4g} of "
        f"{count(report.texts, 'different text')} have, from a sample of {report.sampled:,} of "
        f"{count(report.documents, 'document')}"
    )


BOILERPLATE = Operation(
    "boilerplate",
    """List the shingles that many documents share, such as those of a header.

    It reads a sample of at most some 50,000 documents, and prints how many. Copies of one text count
    once. `textsim rebuild CORPUS --boilerplate 0.01` leaves such shingles out of all texts.

    Examples:
    - `textsim boilerplate news`
    - `textsim boilerplate news --share 0.1 --clusters`

    """,
    columns=("share", "text", "keys"),
    show=_show_boilerplate,
    defaults={"last": 20},
)


def stats(
    corpus: str,
    /,
    *,
    words: int = 10,
    sample: int = 1000,
    seed: int = 1,
    plot: str | None = None,
    language: str | None = None,
    scope: str | None = None,
    form: Format = Format.TABLE,
    database_url: str | None = None,
) -> None:
    """Count the documents, words, similarities, buckets and bytes of a corpus.

    It reads all documents. The similarities are between a sample of documents and their candidates: the
    documents that share a bucket.

    Args:
        words: Print this many of the most frequent words.
        sample: Compare this many documents with their candidates.
        seed: Seed of the sample.
        plot: Draw the statistics to a file ending in .svg or .png.
        language: Count only the documents of this language, such as en.
        scope: Count only the documents of this scope.

    Examples:
    - `textsim stats news --plot news.svg`
    - `textsim stats news --words 20 --sample 5000 --format jsonl`

    """
    from textsim_db.sketch import recall_plots

    if form is Format.CSV:
        raise ConfigurationError("statistics do not fit into one CSV table; use --format jsonl")
    check_plot(plot)
    with connect(database_url) as db:
        opened = db.corpus(corpus)
        with progress("reading", "documents") as show:
            statistics = opened.statistics(words, sample, seed, show, language, scope)
        if not statistics.documents:
            note_unknown_scope(opened, scope)
    if plot is not None:  # first, because a program that reads the output may end the command
        recall_plots.corpus(plot, corpus, statistics)
        print_message(f"drawn: {shown(plot)}")
    if form is Format.TABLE:
        _show(statistics)
    else:
        print_object(dataclasses.asdict(statistics))


def _show(statistics: Statistics) -> None:
    out = console()
    out.print(table(("of the corpus", ""), _totals(statistics)))
    if statistics.languages:
        languages = list(statistics.languages.items())
        out.print(table(("language", "documents"), languages))
    if statistics.frequent:
        columns = ("frequent word", "occurrences", "documents")
        out.print(table(columns, statistics.frequent))
    if statistics.growth:
        columns = ("documents", "words", "distinct words")
        out.print(table(columns, statistics.growth[::-1][::5][::-1]))
    candidates = f"similarity of the candidates of {statistics.sampled:,} documents"
    out.print(table((candidates, "pairs"), tenths(statistics.similarities)))


def _totals(statistics: Statistics) -> list[tuple[str, str]]:
    total = sum(statistics.storage.values())
    each = total / statistics.documents if statistics.documents else 0.0
    recall = "exact" if statistics.recall == 1 else f"{statistics.recall:.4g}"
    lengths = [f"{statistics.lengths[percentile]:,}" for percentile in (0, 50, 100)]
    shared = sum(number for size, number in statistics.buckets if size > 1)
    return [
        ("recall at the threshold", recall),
        ("documents", f"{statistics.documents:,}"),
        ("documents without words", f"{statistics.empty:,}"),
        ("words", f"{statistics.words:,}"),
        ("distinct words", f"{statistics.vocabulary:,}"),
        ("words of a document: least, median, most", ", ".join(lengths)),
        ("buckets", f"{sum(number for _, number in statistics.buckets):,}"),
        ("buckets with several documents", f"{shared:,}"),
        (
            "documents in the largest bucket",
            f"{statistics.buckets[-1][0] if statistics.buckets else 0:,}",
        ),
        ("candidates of a document", f"{statistics.candidates / max(statistics.sampled, 1):.3g}"),
        *((f"bytes of {name}", f"{size:,}") for name, size in statistics.storage.items()),
        ("bytes of a document in all", f"{each:,.0f}"),
    ]
