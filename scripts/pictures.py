"""Draw the pictures of recorded figures, in docs/images: one SVG for light and dark colours.

A picture says in its own style what both kinds of colours are, and has a background of its own. So it is
legible on a page of any colour. It loads nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from math import ceil, floor, log10
from typing import Any, NamedTuple

Figures = Mapping[str, Any]

WIDTH = 460
LEFT, RIGHT = 174, WIDTH - 104
"""The ends of an axis of a picture with rows; names stand on its left, values on its right."""
TOP, ROW = 80, 25
"""The middle of the first row, and the distance of rows."""
STYLE = """
svg { --ground: #ffffff; --ink: #1f2937; --soft: #566070; --line: #d5dae1;
  --ours: #1d5fd1; --peer: #8a94a3 }
@media (prefers-color-scheme: dark) {
  svg { --ground: #14181f; --ink: #e8ebf0; --soft: #a9b2bf; --line: #38404c;
    --ours: #6ea8ff; --peer: #7d8796 }
}
text { fill: var(--ink); font-size: 14px }
.title { font-size: 18px; font-weight: 600 }
.soft { fill: var(--soft); font-size: 13px }
.ground { fill: var(--ground) }
.ours { fill: var(--ours); stroke: var(--ours) }
.peer { fill: var(--peer); stroke: var(--peer) }
.hollow { fill: var(--ground); stroke-width: 2 }
.thick { fill: none; stroke-width: 2 }
.name-ours { font-weight: 600 }
.end { text-anchor: end }
.middle { text-anchor: middle }
.grid { stroke: var(--line) }
.guide { stroke: var(--soft); stroke-dasharray: 3 3 }
"""


class Row(NamedTuple):
    """A library with its figures in a picture."""

    name: str
    is_ours: bool
    figures: Figures

    @property
    def kind(self) -> str:
        """The class of its marks."""
        return "ours" if self.is_ours else "peer"


def pictures(files: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the SVG of each picture by its name; files: what each benchmark recorded."""
    rows = peers(files["compare"])
    return {
        "benchmark-rate": rate(rows),
        "benchmark-latency": latency(rows),
        "benchmark-recall": recall(rows),
        "benchmark-growth": growth(files["scale"]["figures"]),
        "classic-curves": curves(files["classic"]["figures"]["curves"]),
    }


def peers(compare: Mapping[str, Any]) -> list[Row]:
    """Return the libraries that were measured, in the order of the table."""
    names = [row[0] for row in compare["tables"]["alternatives"][1:]]
    measured = [figures for figures in compare["figures"].values() if _is_measured(figures)]
    ours = "textsim-db"
    return [
        Row(name, name.startswith(ours), figures)
        for name, figures in zip(names, measured, strict=True)
    ]


def rate(rows: Sequence[Row]) -> str:
    """Return bars: how many documents are loaded a second."""
    most = max(row.figures["rate"] for row in rows)
    marks = []
    for row, y in _with_heights(rows):
        length = (RIGHT - LEFT) * row.figures["rate"] / most
        marks.append(
            f'<rect class="{row.kind}" x="{LEFT}" y="{y - 7}" width="{length:.1f}" height="14"/>'
            + _text(LEFT + length + 6, y, f"{row.figures['rate']:,.0f}")
        )
    documents = rows[0].figures["documents"]
    fewer = [row.name for row in rows if row.figures["documents"] < documents]
    notes = [f"{' and '.join(fewer)}: {_least(rows):,.0f} documents"] if fewer else []
    title = "Documents loaded a second"
    return _of_rows(title, f"{documents:,.0f} documents; more is better", rows, marks, notes)


def latency(rows: Sequence[Row]) -> str:
    """Return points and lines: the median of a query, and its 99th percentile."""
    shortest = min(row.figures["median"] for row in rows)
    longest = max(row.figures["p99"] for row in rows)
    decades = range(floor(log10(shortest)), ceil(log10(longest)) + 1)
    at = _logarithmic(decades, LEFT, RIGHT)
    marks = [_grid(at(10.0**n), rows, f"{10.0**n:g}") for n in decades]
    for row, y in _with_heights(rows):
        median, p99 = at(row.figures["median"]), at(row.figures["p99"])
        marks.append(
            f'<path class="{row.kind} thick" d="M{median:.1f} {y}H{p99:.1f}"/>'
            f'<circle class="{row.kind}" cx="{median:.1f}" cy="{y}" r="5"/>'
            + _text(RIGHT + 12, y, f"{_number(row.figures['median'])} ms")
        )
    under = "number: the median; line: to the 99th percentile"
    return _of_rows("One query, milliseconds", under, rows, marks)


def recall(rows: Sequence[Row]) -> str:
    """Return a point and a ring for each library: recall and precision."""
    at = _linear(0, 1, LEFT, RIGHT)
    marks = [_grid(at(share), rows, f"{share:g}") for share in (0, 0.25, 0.5, 0.75, 1)]
    for row, y in _with_heights(rows):
        found, right = row.figures["recall"], row.figures["precision"]
        marks.append(
            f'<path class="{row.kind} thick" d="M{at(found):.1f} {y}H{at(right):.1f}"/>'
            f'<circle class="{row.kind} hollow" cx="{at(right):.1f}" cy="{y}" r="6"/>'
            f'<circle class="{row.kind}" cx="{at(found):.1f}" cy="{y}" r="3"/>'
            + _text(RIGHT + 14, y, f"{found:.3f}, {right:.2f}")
        )
    under = "point: recall; ring: precision"
    return _of_rows("Recall and precision", under, rows, marks)


def growth(sizes: Mapping[str, Figures]) -> str:
    """Return lines: how seconds grow with the documents, beside growth in proportion."""
    counts = sorted(int(size[1:]) for size in sizes)
    left, right, top, bottom = 76, WIDTH - 156, TOP, 266
    across = _logarithmic((log10(counts[0]), log10(counts[-1])), left + 24, right)
    lines = {
        "load": [sizes[f"d{count}"]["load_s"] for count in counts],
        "all pairs": [sizes[f"d{count}"]["all_pairs_warm_s"] for count in counts],
        "one query": [sizes[f"d{count}"]["one_query_warm_median_ms"] / 1000 for count in counts],
    }
    values = [value for line in lines.values() for value in line]
    decades = range(floor(log10(min(values))), ceil(log10(max(values))) + 1)
    up = _logarithmic(decades, bottom, top)
    marks = []
    for n in decades:
        y = up(10.0**n)
        marks.append(f'<path class="grid" d="M{left} {y:.1f}H{right}"/>')
        marks.append(_text(left - 6, y, _duration(10.0**n), "soft end"))
    for count in counts:
        marks.append(_text(across(count), bottom + 20, _count(count), "soft middle"))
    for name, line in lines.items():
        points = [(across(count), up(value)) for count, value in zip(counts, line, strict=True)]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        proportional = up(line[0] * counts[-1] / counts[0])
        marks.append(f'<path class="guide" d="M{_point(points[0])}L{right} {proportional:.1f}"/>')
        marks.append(f'<path class="ours thick" d="M{path}"/>')
        marks += [f'<circle class="ours" cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in points]
        label = f"{name} {_duration(line[-1])}"
        marks.append(_text(right + 10, points[-1][1], label))
    under = "dashed: in proportion to the documents"
    return _svg("Time for more documents", under, bottom + 40, marks)


def curves(measured: Mapping[str, Figures]) -> str:
    """Return lines and points: which share of the pairs of a similarity shares a bucket.

    A line is the formula, 1 - (1 - s^rows)^bands. A point is a share of pairs that a way of the classic
    experiment found.
    """
    left, right, top, bottom = 56, WIDTH - 20, TOP, 300
    across, up = _linear(0.5, 1, left, right), _linear(0, 1, bottom, top)
    marks = []
    for n in range(6):
        x, y = across(0.5 + n / 10), up(n / 5)
        marks.append(f'<path class="grid" d="M{left} {y:.1f}H{right}M{x:.1f} {top}V{bottom}"/>')
        marks.append(_text(left - 6, y, f"{n / 5:g}", "soft end"))
        marks.append(_text(x, bottom + 16, f"{0.5 + n / 10:g}", "soft middle"))
    for bands, rows in dict.fromkeys((way["bands"], way["rows"]) for way in measured.values()):
        steps = [0.5 + n / 100 for n in range(51)]
        line = [(across(s), up(1 - (1 - s**rows) ** bands)) for s in steps]
        marks.append(f'<path class="guide thick" d="M{"L".join(map(_point, line))}"/>')
        middle = (1 / bands) ** (1 / rows)
        label = f"{bands} x {rows}"
        marks.append(_text(across(middle) - 8, up(0.68), label, "soft end"))
    height = bottom + 44
    for name, way in measured.items():
        is_ours = name.startswith("corpus")
        kind = "ours" if is_ours else "peer"
        hollow = " hollow" if name.endswith(("bands", "shift")) else ""
        for point in way["points"]:
            place = f'cx="{across(point["similarity"]):.1f}" cy="{up(point["found"]):.1f}"'
            marks.append(f'<circle class="{kind}{hollow}" {place} r="4"/>')
        marks.append(f'<circle class="{kind}{hollow}" cx="{left + 4}" cy="{height}" r="4"/>')
        marks.append(_text(left + 16, height, f"{name}, {way['bands']} x {way['rows']}", "soft"))
        height += 22
    under = "by similarity; dashed: the formula; points: measured"
    return _svg("Share of the pairs with a common bucket", under, height, marks)


def _is_measured(figures: Any) -> bool:
    return isinstance(figures, dict) and "rate" in figures


def _least(rows: Iterable[Row]) -> float:
    return float(min(row.figures["documents"] for row in rows))


def _with_heights(rows: Sequence[Row]) -> list[tuple[Row, int]]:
    return [(row, TOP + ROW * number) for number, row in enumerate(rows)]


def _linear(first: float, last: float, start: float, end: float) -> Callable[[float], float]:
    """Return where a value stands on an axis of pixels."""
    return lambda value: start + (end - start) * (value - first) / (last - first)


def _logarithmic(decades: Sequence[float], start: float, end: float) -> Callable[[float], float]:
    """Return where a value stands on an axis of powers of ten."""
    at = _linear(decades[0], decades[-1], start, end)
    return lambda value: at(log10(value))


def _number(value: float) -> str:
    """Return a number with at least two digits: 0.043, 0.90, 1.0, 150."""
    return f"{value:.{max(0, 1 - floor(log10(value)))}f}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds > 0.9 else f"{1000 * seconds:.3g} ms"


def _count(documents: int) -> str:
    return f"{documents / 1e6:g} million" if documents >= 1e6 else f"{documents:,}"


def _point(point: tuple[float, float]) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    """Return a text whose middle has the height y."""
    return f'<text class="{kind}" x="{x:.1f}" y="{y + 5:.1f}">{escape(text)}</text>'


def _grid(x: float, rows: Sequence[Row], label: str) -> str:
    bottom = TOP + ROW * len(rows) - ROW // 2
    line = f'<path class="grid" d="M{x:.1f} {TOP - ROW // 2}V{bottom}"/>'
    return line + _text(x, bottom + 12, label, "soft middle")


def _of_rows(
    title: str, under: str, rows: Sequence[Row], marks: Sequence[str], notes: Sequence[str] = ()
) -> str:
    """Return a picture with a row for each library; notes: texts below the rows."""
    bottom = TOP + ROW * len(rows)
    names = [
        _text(LEFT - 10, y, row.name, f"end name-{row.kind}") for row, y in _with_heights(rows)
    ]
    notes_ = [_text(WIDTH - 16, bottom, note, "soft end") for note in notes]
    return _svg(title, under, bottom + 26, [*marks, *names, *notes_])


def _svg(title: str, under: str, height: int, marks: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="system-ui, sans-serif" role="img">\n'
        f"<title>{escape(title)}: {escape(under)}</title>\n<style>{STYLE}</style>\n"
        f'<rect class="ground" width="{WIDTH}" height="{height}" rx="8"/>\n'
        f'<text class="title" x="16" y="30">{escape(title)}</text>\n'
        f'<text class="soft" x="16" y="51">{escape(under)}</text>\n'
        + "\n".join(marks)
        + "\n</svg>\n"
    )
