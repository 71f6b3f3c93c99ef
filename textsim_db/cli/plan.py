"""textsim plan: bands and rows to choose from, and what a corpus really finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textsim_db.cli.common import (
    DatabaseUrl,
    check_output,
    complain,
    connect,
    count,
    number,
    shown,
    whole_number,
)
from textsim_db.cli.output import Format, FormatOption, Setting, console, table, write
from textsim_db.cli.output import similarity as shown_similarity
from textsim_db.cli.progress import counting
from textsim_db.settings import Bands

if TYPE_CHECKING:
    from textsim_db.results import RecallReport
    from textsim_db.sketch.band_options import Option

_AROUND = 3
_SHOWN = 10
_BAR = 40


def plan(
    corpus: Annotated[
        str | None,
        typer.Argument(metavar="CORPUS", help="Measure this corpus. Without one, only compute."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            parser=number,
            metavar="NUMBER",
            help="The similarity from which documents match. Default: 0.8, or the corpus's own.",
        ),
    ] = None,
    recall: Annotated[
        float | None,
        typer.Option(
            parser=number,
            metavar="NUMBER",
            help="The probability that a pair exactly at the threshold is to be found. "
            "Default: 0.95, or the corpus's own.",
        ),
    ] = None,
    num_hashes: Annotated[
        int | None,
        typer.Option(
            parser=whole_number,
            metavar="NUMBER",
            help="Values in a signature. Default: 128, or the corpus's own.",
        ),
    ] = None,
    documents: Annotated[
        int,
        typer.Option(
            parser=whole_number, metavar="NUMBER", help="Documents to expect. Without a corpus."
        ),
    ] = 1_000_000,
    words: Annotated[
        float,
        typer.Option(parser=number, metavar="NUMBER", help="Words of each. Without a corpus."),
    ] = 200,
    background: Annotated[
        float,
        typer.Option(
            parser=number,
            metavar="NUMBER",
            help="The similarity of documents that have nothing to do with each other: near 0 with "
            "shingles of several words, 0.1 and more with single words. Without a corpus.",
        ),
    ] = 0.05,
    sample: Annotated[
        int,
        typer.Option(
            parser=whole_number,
            metavar="NUMBER",
            help="Documents of the corpus to compare with all.",
        ),
    ] = 1000,
    seed: Annotated[
        int | None,
        typer.Option(parser=whole_number, metavar="NUMBER", help="Seed of the sample."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Show every possible number of rows.")
    ] = False,
    plot: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Draw the S-curve into a file ending in .svg or .png."),
    ] = None,
    form: FormatOption = Format.TABLE,
    database_url: DatabaseUrl = None,
) -> None:
    """Show what bands and rows would find and cost, or measure what a corpus finds.

    Without CORPUS: the possible numbers of bands and rows, with the probability that a pair becomes
    a candidate, the storage, and the candidates to expect. With CORPUS: a sample of its documents is
    compared with all of them by brute force; see which are missed. JSON lines and CSV hold the
    bandings, all of them.

    Examples: `textsim plan --threshold 0.7 --recall 0.99 --plot curve.svg`,
    `textsim plan news --sample 2000`
    """
    from textsim_db.sketch import band_options, recall_plots

    if plot is not None:
        recall_plots.check_file(plot)
        check_output(plot)
    report = None
    if corpus is None:
        threshold = 0.8 if threshold is None else threshold
        recall = 0.95 if recall is None else recall
        num_hashes = 128 if num_hashes is None else num_hashes
        made = band_options.plan(threshold, recall, num_hashes, words, documents, background)
        chosen = next(option for option in made if option.chosen)
        banding = Bands(chosen.bands, chosen.rows)
    else:
        from textsim_db.read.measure_recall import distribution as measured

        with connect(database_url) as db:
            opened = db.corpus(corpus)
            config = opened.config
            threshold = config.threshold if threshold is None else threshold
            recall = config.recall if recall is None else recall
            num_hashes = config.num_hashes if num_hashes is None else num_hashes
            band_options.choose(threshold, recall, num_hashes)
            with counting("comparing", "documents") as progress:
                report = opened.measure_recall(threshold, sample, seed, progress)
        banding = opened.config.banding
        made = band_options.options(threshold, recall, num_hashes, report.words, measured(report))
        _tell(report, banding, form)
    _write_options(made, threshold, every, form)
    if form is Format.TABLE:
        _draw(banding, threshold)
    if plot is not None:
        near = [Bands(o.bands, o.rows) for o in _near(made) if (o.bands, o.rows) != banding]
        recall_plots.s_curve(plot, [banding, *near], threshold, report)
        complain(f"drawn: {shown(plot)}")


def _near(options: list[Option]) -> list[Option]:
    chosen = next(i for i, option in enumerate(options) if option.chosen)
    return options[max(0, chosen - _AROUND) : chosen + _AROUND + 1]


def _write_options(options: list[Option], threshold: float, every: bool, form: Format) -> None:
    if form is Format.TABLE and not every:
        options = _near(options)
    similarities = sorted({0.3, 0.5, 0.7, 0.9, threshold})
    columns = ["bands", "rows", *(f"found at {s:g}" for s in similarities)]
    columns += ["bytes/document", "candidates/document", "chosen"]
    rows: list[Sequence[Any]] = []
    for option in options:
        probabilities = [option.probability(s) for s in similarities]
        candidates = Setting(float(f"{option.candidates:.3g}"))
        chosen = ("yes" if option.chosen else "") if form is Format.TABLE else option.chosen
        place = (option.bands, option.rows)
        rows.append((*place, *probabilities, option.storage, candidates, chosen))
    write(columns, rows, form)


def _draw(banding: Bands, threshold: float) -> None:
    from rich.text import Text

    lines = [f"probability of becoming a candidate, {banding.bands} bands of {banding.rows} rows"]
    for step in range(20):
        similarity = (step + 1) / 20
        probability = banding.probability(similarity)
        bar = "█" * round(probability * _BAR)
        mark = "  threshold" if step == round(threshold * 20) - 1 else ""
        lines.append(f"{similarity:.2f} {bar:<{_BAR}} {shown_similarity(probability)}{mark}")
    out = console()
    out.print()
    out.print(Text("\n".join(lines)))


def _tell(report: RecallReport, banding: Bands, form: Format) -> None:
    """Print what was measured: on standard error where the output is for a program."""
    lines = _lines(report, banding)
    if form is not Format.TABLE:
        for line in lines:
            complain(line)
        return
    from rich.text import Text

    out = console()
    out.print(Text("\n".join(lines)))
    tenths = [sum(report.histogram[i : i + 10]) for i in range(0, 90, 10)]
    tenths.append(sum(report.histogram[90:]))
    rows = [(f"{i / 10:.1f} to {i / 10 + 0.1:.1f}", pairs) for i, pairs in enumerate(tenths)]
    out.print(table(("similarity", "pairs"), rows))
    if report.missed:
        missed = [(pair.similarity, pair.a, pair.b) for pair in report.missed[:_SHOWN]]
        title = f"missed: they share no bucket ({len(report.missed):,} in all)"
        out.print(table(("similarity", "a", "b"), missed, title))
    if report.lost:
        keys = ", ".join(f'"{shown(key)}"' for key in report.lost[:_SHOWN])
        more = ", ..." if len(report.lost) > _SHOWN else ""
        out.print(Text(f"documents of which no similar one would be found: {keys}{more}\n"))


def _lines(report: RecallReport, banding: Bands) -> list[str]:
    candidates = report.candidates or [0]
    mean = sum(candidates) / len(candidates)
    lines = [
        f"{count(report.sampled, 'document')} of {report.documents:,}, compared with all of them; "
        f"{report.words:.0f} words on average",
        f"{banding.bands} bands of {banding.rows} rows, threshold {report.threshold:g}",
        f"candidates of a document: {mean:.3g} on average, "
        f"{candidates[len(candidates) // 2]:,} in the middle, {candidates[-1]:,} at most",
    ]
    if report.recall is None:
        lines.append("no pair of similar documents is among them, so no recall can be measured")
        return lines
    low, high = report.interval
    lines.append(
        f"recall: {report.recall:.4f} ({report.found:,} of {count(report.pairs, 'pair')}; with 95 % "
        f"between {low:.4f} and {high:.4f}), promised for these similarities: {report.promised:.4f}"
    )
    return lines
