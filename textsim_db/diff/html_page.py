"""A comparison of two texts as a self-contained HTML page, and as an output of a notebook."""

from __future__ import annotations

from html import escape
from string import Template

from textsim_db.diff.explanation import Explanation
from textsim_db.diff.marked_parts import side_by_side
from textsim_db.diff.word_diff import Change, Part
from textsim_db.measures.by_name import MEASURES
from textsim_db.show.layout import output
from textsim_db.show.tables import table

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$a and $b</title>
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 1.5rem auto; max-width: 80rem; padding: 0 1rem; }
.texts { display: grid; grid-template-columns: 1fr 1fr; gap: 2rem; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; }
.text a { color: inherit; text-decoration: none; }
.text a:hover, .text a:focus, .text a:target { background: #3b82f640; outline: 1px solid #3b82f6; }
del { background: #ef444440; text-decoration-color: #ef4444; }
ins { background: #22c55e40; text-decoration-color: #22c55e; }
table { border-collapse: collapse; margin: 1rem 0; }
td { padding: 0.1rem 1.5rem 0.1rem 0; }
td + td { text-align: right; font-variant-numeric: tabular-nums; }
.warning { border-left: 0.3rem solid #f59e0b; padding-left: 0.7rem; }
@media (max-width: 45rem) { .texts { grid-template-columns: 1fr; } }
</style>
</head>
<body>
<h1>$a and $b</h1>
$warning<div class="texts">
<section><h2>$a</h2>
<div class="text">$left</div></section>
<section><h2>$b</h2>
<div class="text">$right</div></section>
</div>
<h2>Measures</h2>
<table>
$rows
</table>
<p>Each run of words that both texts share links to the same words in the other text.</p>
</body>
</html>
""")


def warning(distinctions: list[str]) -> str:
    """Return a warning if two texts differ only in these kinds of words, or an empty string."""
    if not distinctions:
        return ""
    *most, last = distinctions
    kinds = f"{', '.join(most)} and {last}" if most else last
    return f"The texts differ only in {kinds}: both may have to be kept."


def comparison(explanation: Explanation, a: str, b: str) -> str:
    """Return the page for two texts with these names."""
    message = warning(explanation.distinctions)
    rows = [
        f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>"
        for name, value in measure_rows(explanation)
    ]
    return _PAGE.substitute(
        a=escape(a),
        b=escape(b),
        warning=f'<p class="warning">{message}</p>\n' if message else "",
        left="".join(_marked(i, part, "a", "b") for i, part in enumerate(explanation.parts)),
        right="".join(_marked(i, part, "b", "a") for i, part in enumerate(explanation.parts)),
        rows="\n".join(rows),
    )


def output_of(explanation: Explanation) -> str:
    """Return a comparison as an output of a notebook."""
    message = warning(explanation.distinctions)
    return output(
        f'<p class="warning">{message}</p>\n' if message else "",
        side_by_side(explanation.parts, "<b>a</b>", "<b>b</b>"),
        table(("measure", "value"), measure_rows(explanation)),
    )


def measure_rows(explanation: Explanation) -> list[tuple[str, str]]:
    """Return the name and the value of each measure, formatted for display."""
    values = dict(explanation.measures)
    rows = []
    for measure in MEASURES.values():
        of = "shingles" if measure.of_shingles else "words"
        name = measure.name.replace("_", " ")
        value = values[measure.name]
        unit = f" {measure.unit.removesuffix('s') if value == 1 else measure.unit}".rstrip()
        if measure.name == "containment":
            rows.append(("containment of the first in the second, of shingles", f"{value:.4g}"))
            other = values["containment_of_b"]
            rows.append(("containment of the second in the first, of shingles", f"{other:.4g}"))
        else:
            many = value >= 1000 and value == int(value)
            rows.append((f"{name}, of {of}", f"{value:{',.0f' if many else '.4g'}}{unit}"))
    similarity, error = explanation.estimate
    rows.append(("jaccard, estimated by signatures", f"{similarity:.4g} ± {error:.2g}"))
    return rows


def _marked(number: int, part: Part, side: str, other: str) -> str:
    text = escape(getattr(part, side))
    if part.change is Change.SAME:
        return f'<a id="{side}{number}" href="#{other}{number}">{text}</a>'
    if not text:
        return ""
    return f"<del>{text}</del>" if side == "a" else f"<ins>{text}</ins>"
