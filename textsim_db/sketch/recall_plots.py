"""Plots of recall and of a corpus as SVG or PNG. The extra "plot" installs matplotlib."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from textsim_db.errors import ConfigurationError, needs_extra
from textsim_db.results import RecallReport, Statistics
from textsim_db.results.reports import Frequency
from textsim_db.settings.choose_bands import Bands

KINDS = (".svg", ".png")

_EQUAL_WIDTH = 0.02
"""The width of the bar for equal sets, which makes it visible at the edge."""
_DRAWN_WORDS = 15
_LONGEST_WORD = 20
"""The letters of a word that a plot shows; a longer word would leave no space for the bars."""
_FEW_POWERS = 200
"""The quotient of an axis's ends up to which 2 and 5 times a power of ten have labels, too."""


def check_file(path: str) -> None:
    """Raise ConfigurationError unless matplotlib is installed and writes files of this name."""
    if PurePath(path).suffix.lower() not in KINDS:
        raise ConfigurationError(f"{path}: plots are written as {' or '.join(KINDS)}")
    _figure_class()


def s_curve(
    path: str, bandings: list[Bands], threshold: float, report: RecallReport | None
) -> None:
    """Draw the probability of becoming a candidate over the similarity, for each banding."""
    check_file(path)
    s_curve_figure(bandings, threshold, report).savefig(path)


def corpus(path: str, name: str, statistics: Statistics) -> None:
    """Draw the similarities of candidates, the vocabulary, the frequent words and the buckets."""
    check_file(path)
    corpus_figure(name, statistics).savefig(path)


def s_curve_figure(bandings: list[Bands], threshold: float, report: RecallReport | None) -> Any:
    """Return the figure of s_curve().

    The first banding has a thick line. If there is a report, its measured pairs are drawn behind the
    lines. Pairs of similarity 1 have a bar of their own, right of 1.
    """
    figure = _figure_class()(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    steps = [i / 200 for i in range(201)]
    for number, banding in enumerate(bandings):
        probabilities = [banding.probability(s) for s in steps]
        style = {"linewidth": 2.5, "zorder": 3} if not number else {"linewidth": 1, "alpha": 0.6}
        label = f"{banding.bands} bands of {banding.rows} rows"
        axes.plot(steps, probabilities, label=label, **style)
    axes.axvline(threshold, color="grey", linestyle=":", label=f"threshold {threshold:g}")
    axes.set(xlabel="Jaccard similarity", ylabel="probability of becoming a candidate")
    axes.set(xlim=(0, 1 + _EQUAL_WIDTH), ylim=(0, 1.02))
    if report is not None:
        _draw_pairs(axes.twinx(), report)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


def corpus_figure(name: str, statistics: Statistics) -> Any:
    figure = _figure_class()(figsize=(10, 7), layout="constrained")
    figure.suptitle(f"{name}: {statistics.documents:,} documents", parse_math=False)
    (similarities, growth), (words, buckets) = figure.subplots(2, 2)
    _draw_similarities(similarities, statistics)
    growth.plot(
        [step.words for step in statistics.growth], [step.vocabulary for step in statistics.growth]
    )
    growth.set(xlabel="words", ylabel="distinct words", title="vocabulary", xlim=0, ylim=0)
    _label_counts(growth.xaxis, growth.yaxis)
    _draw_words(words, statistics.frequent[:_DRAWN_WORDS][::-1])
    buckets.scatter(
        [size for size, _ in statistics.buckets], [n for _, n in statistics.buckets], s=12
    )
    buckets.set(xscale="log", yscale="log", xlabel="documents in a bucket", ylabel="buckets")
    buckets.set_title("buckets by size")
    _label_powers(buckets.xaxis, buckets.yaxis)
    return figure


def _draw_similarities(axes: Any, statistics: Statistics) -> None:
    places = [i / 100 for i in range(len(statistics.similarities))]
    axes.bar(places, statistics.similarities, width=0.01, align="edge")
    axes.set(xlabel="Jaccard similarity", ylabel="candidates", xlim=(0, 1))
    axes.set_title(f"candidates of {statistics.sampled:,} documents")
    _label_counts(axes.yaxis)


def _draw_words(axes: Any, words: list[Frequency]) -> None:
    axes.barh(range(len(words)), [word.occurrences for word in words])
    axes.set_yticks(range(len(words)), [word.word[:_LONGEST_WORD] for word in words])
    axes.set(xlabel="occurrences", title="frequent words")
    _label_counts(axes.xaxis)


def _draw_pairs(axes: Any, report: RecallReport) -> None:
    *unequal, equal = report.histogram
    places = [i / len(unequal) for i in range(len(unequal))]
    style = {"align": "edge", "color": "tab:orange"}
    axes.bar(places, unequal, width=1 / len(unequal), alpha=0.35, label="pairs", **style)
    label = f"pairs of similarity 1: {equal:,}"
    axes.bar([1], [equal], width=_EQUAL_WIDTH, alpha=0.8, label=label, **style)
    axes.set(ylabel=f"pairs of {report.sampled:,} documents with {report.documents:,}")
    axes.set_yscale("symlog")


def _label_counts(*axes: Any) -> None:
    """Label an axis of counts with few and short numbers, such as 20 k."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    for axis in axes:
        axis.set_major_locator(MaxNLocator(5, integer=True))
        axis.set_major_formatter(EngFormatter())


def _label_powers(*axes: Any) -> None:
    """Label a logarithmic axis of counts, which may span less than a power of ten."""
    from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

    for axis in axes:
        low, high = axis.get_view_interval()
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < _FEW_POWERS * low else (1,)))
        axis.set_major_formatter(EngFormatter())
        axis.set_minor_formatter(NullFormatter())


def _figure_class() -> Any:
    with needs_extra("plot", "plots need matplotlib, which is not installed"):
        from matplotlib.figure import Figure
    return Figure
