"""The templates of all pages, and how they show values. It serves nothing, so it needs no server."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import jinja2

from textsim_db.errors import shown
from textsim_db.results import Judgement
from textsim_db.results.numbers_as_text import count
from textsim_db.review.side_by_side import visible

FOLDER = Path(__file__).parent


class NextCommand(NamedTuple):
    purpose: str
    command: str
    effect: str
    """When to choose it, and what it changes, in sentences."""


def mark(judgement: Judgement | None) -> str:
    """Return what a form carries to say which judgement its user saw."""
    return "" if judgement is None else f"{judgement.verdict} {judgement.judged_at.isoformat()}"


def shown_threshold(value: float) -> str:
    """Return a threshold with two digits, or with more if it has more."""
    return f"{value:.2f}" if round(value, 2) == value else f"{value:.4g}"


def _similarity(value: float) -> str:
    return "0.999" if 0.9995 <= value < 1 else f"{value:.3f}"


def _position(place: float) -> str:
    """Return a place in a picture, whose width or height is 1."""
    return f"{100 * place:.2f}%"


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def _interval(interval: tuple[float, float]) -> str:
    low, high = interval
    return f"{100 * low:.0f}–{100 * high:.0f} %"


def _time(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M}"


TEMPLATES = jinja2.Environment(
    # A page that stands alone includes the style.
    loader=jinja2.FileSystemLoader([FOLDER / "templates", FOLDER / "static"]),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters |= {
    "shown": shown, "similarity": _similarity, "count": count, "time": _time, "percent": _percent,
    "mark": mark,
    "interval": _interval, "threshold": shown_threshold, "position": _position,
    "visible": visible,
}  # fmt: skip


def render(template: str, /, **values: Any) -> str:
    return TEMPLATES.get_template(template).render(**values)
