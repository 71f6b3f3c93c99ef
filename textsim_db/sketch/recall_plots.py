"""Plots of recall and of a corpus as SVG or PNG. The extra "plot" installs matplotlib."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from textsim_db.errors import ConfigurationError
from textsim_db.results import RecallReport, Statistics
from textsim_db.settings import Bands

KINDS = (".svg", ".png")


def check_file(path: str) -> None:
    """Raise ConfigurationError unless matplotlib is installed and writes files of this name."""
    if PurePath(path).suffix.lower() not in KINDS:
        raise ConfigurationError(f"{path}: plots are written as {' or '.join(KINDS)}")
    _figure_class()


def s_curve(
    path: str, bandings: list[Bands], threshold: float, report: RecallReport | None = None
) -> None:
    """Draw the probability of becoming a candidate over the similarity, for each banding.

    The first banding has a thick line. If there is a report, its measured pairs are drawn behind the
    lines. Raises ConfigurationError if matplotlib is missing, or if the file is neither SVG nor PNG.
    """
    check_file(path)
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
    axes.set(xlim=(0, 1), ylim=(0, 1.02))
    axes.legend(loc="upper left", frameon=False)
    if report is not None:
        _draw_pairs(axes.twinx(), report)
    figure.savefig(path)


def corpus(path: str, name: str, statistics: Statistics) -> None:
    """Draw the similarities of candidates, the vocabulary, the frequent words and the buckets.

    Raises ConfigurationError if matplotlib is missing, or for a file that is neither SVG nor PNG.
    """
    check_file(path)
    figure = _figure_class()(figsize=(10, 7), layout="constrained")
    figure.suptitle(f"{name}: {statistics.documents:,} documents")
    (similarities, growth), (words, buckets) = figure.subplots(2, 2)
    places = [i / 100 for i in range(len(statistics.similarities))]
    similarities.bar(places, statistics.similarities, width=0.01, align="edge")
    similarities.set(xlabel="Jaccard similarity", ylabel="candidates", xlim=(0, 1))
    similarities.set_title(f"candidates of {statistics.sampled:,} documents")
    growth.plot(
        [step.words for step in statistics.growth], [step.vocabulary for step in statistics.growth]
    )
    growth.set(xlabel="words", ylabel="distinct words", title="vocabulary", xlim=0, ylim=0)
    shown = statistics.frequent[:15][::-1]
    words.barh([word.word for word in shown], [word.occurrences for word in shown])
    words.set(xlabel="occurrences", title="frequent words")
    buckets.scatter(
        [size for size, _ in statistics.buckets], [n for _, n in statistics.buckets], s=12
    )
    buckets.set(xscale="log", yscale="log", xlabel="documents in a bucket", ylabel="buckets")
    buckets.set_title("buckets by size")
    figure.savefig(path)


def _draw_pairs(axes: Any, report: RecallReport) -> None:
    places = [i / 100 for i in range(len(report.histogram))]
    axes.bar(places, report.histogram, width=0.01, align="edge", color="tab:orange", alpha=0.35)
    axes.set(ylabel=f"pairs of {report.sampled:,} documents with {report.documents:,}")
    axes.set_yscale("symlog")


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigurationError(
            "plots need matplotlib, which is not installed: pip install 'textsim-db[plot]'"
        ) from error
    return Figure
