"""A comparison of two texts as an output of a notebook."""

from __future__ import annotations

from textsim_db.diff.explanation import Explanation
from textsim_db.diff.marked_parts import side_by_side
from textsim_db.measures.by_name import MEASURES
from textsim_db.show.escape import shortened
from textsim_db.show.layout import output
from textsim_db.show.tables import table

_LONGEST_HEAD = 200


def warning(distinctions: list[str]) -> str:
    """Return a warning if two texts differ only in these kinds of words, or an empty string."""
    if not distinctions:
        return ""
    *most, last = distinctions
    kinds = f"{', '.join(most)} and {last}" if most else last
    return f"The texts differ only in {kinds}: both may have to be kept."


def warning_note(distinctions: list[str]) -> str:
    """Return the warning as a paragraph of HTML, or an empty string."""
    message = warning(distinctions)
    return f'<p class="warning">{message}</p>\n' if message else ""


def output_of(explanation: Explanation) -> str:
    """Return a comparison as an output of a notebook."""
    return output(
        warning_note(explanation.distinctions),
        side_by_side(explanation.parts, *map(_head, explanation.names)),
        table(("measure", "value"), measure_rows(explanation)),
    )


def _head(name: str) -> str:
    return f"<b><bdi>{shortened(name, _LONGEST_HEAD)}</bdi></b>"


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
