"""The plot of a comparison, with matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

PANELS = {
    "rate": "documents/s, strings to index",
    "median": "one query, median ms",
    "bytes": "bytes/document",
    "recall": "recall",
}


def draw(results: dict[str, dict[str, dict[str, Any]]], path: Path) -> None:
    """Draw bars of the main figures, a row of panels for each set of documents."""
    figure = Figure(figsize=(3.4 * len(PANELS), 2.6 * len(results)), layout="constrained")
    axes = figure.subplots(len(results), len(PANELS), squeeze=False)
    for row, (title, contenders) in enumerate(results.items()):
        there = {name: found for name, found in contenders.items() if "missing" not in found}
        for column, (what, label) in enumerate(PANELS.items()):
            panel = axes[row][column]
            values = [found[what] or 0 for found in there.values()]
            bars = panel.barh(list(there), values, color="tab:blue")
            panel.bar_label(bars, [f"{value:,.3g}" for value in values], padding=2, fontsize=8)
            panel.invert_yaxis()
            panel.set_title(label if column else f"{title}: {label}", fontsize=9)
            panel.margins(x=0.25)
            if column:
                panel.set_yticklabels([])
            if what == "median":
                panel.set_xscale("log")
    figure.savefig(path)
