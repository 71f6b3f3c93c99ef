"""Charts as SVG inside HTML: bars of counts over the similarity, with a curve."""

from __future__ import annotations

from collections.abc import Sequence
from math import log1p

_HEIGHT = 60


def over_similarity(
    counts: Sequence[int], curve: Sequence[float] = (), threshold: float | None = None
) -> str:
    """Return a chart over the similarities from 0 to 1.

    counts: bars of equal width; their heights are logarithms. curve: shares of 1 at equal distances, the
    first at 0 and the last at 1. threshold: has a line of its own.
    """
    most = log1p(max(counts, default=0)) or 1
    width = 100 / max(len(counts), 1)
    bars = "".join(
        f'<rect class="bar" x="{i * width:.2f}" y="{_HEIGHT - height:.2f}" '
        f'width="{width:.2f}" height="{height:.2f}"/>'
        for i, count in enumerate(counts)
        if (height := _HEIGHT * log1p(count) / most)
    )
    line = f'<polyline class="curve" points="{_points(curve)}"/>' if curve else ""
    mark = "" if threshold is None else _mark(100 * threshold)
    return (
        f'<svg viewBox="0 0 100 {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="pairs by similarity">{bars}{line}{mark}</svg>\n'
        '<div class="axis"><span>0</span><span>similarity</span><span>1</span></div>\n'
    )


def _points(curve: Sequence[float]) -> str:
    step = 100 / max(len(curve) - 1, 1)
    return " ".join(f"{i * step:.2f},{_HEIGHT * (1 - y):.2f}" for i, y in enumerate(curve))


def _mark(x: float) -> str:
    return f'<line class="threshold" x1="{x:.2f}" x2="{x:.2f}" y1="0" y2="{_HEIGHT}"/>'
