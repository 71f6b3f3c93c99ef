"""Only compare/match_rule.py compares a similarity with a threshold to decide what matches."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import textsim_db

PACKAGE: Final = Path(textsim_db.__file__).parent
THRESHOLDS: Final = {"threshold", "close", "unique_from", "edge"}
"""Names of values that a similarity is compared with."""
DECIDES_NOTHING: Final = {
    # Pairs that these functions leave out cannot reach the threshold.
    "compare/brute_force.py:overlaps",
    "compare/pair_values.py:may_reach",
    "compare/promising_pairs.py:_is_promising",
    "sketch/exact_prefix.py:_least_overlap",
    "sketch/exact_prefix.py:_needed",
    "sketch/exact_prefix.py:shares_enough",
    "spark/stage_1_buckets.py:entries_of",
    # These compare two thresholds.
    "settings/corpus_settings.py:check_unique_from",
    "write/write_batch.py:write",
    "corpus/arguments.py:_search_threshold",
    "read/find_candidates.py:warn_of_misses",
    "settings/choose_bands.py:choose_bands",
    "settings/choose_bands.py:probability_of",
    "sketch/plan_options.py:exact_candidates",
    "sketch/plan_options.py:plan_edits",
    # An answer to a model shows what differs of similar texts only.
    "mcp/reading_tools.py:rows",
    # A page of a review shows which matches another threshold would keep.
    "review/pair_arrays.py:beside",
    "review/pair_arrays.py:effects",
}


def test_one_module_compares_similarities_with_thresholds() -> None:
    places = {place for path in sorted(PACKAGE.rglob("*.py")) for place in _places(path)}
    assert places == {"compare/match_rule.py:is_match", *DECIDES_NOTHING}


def test_one_function_of_sql_compares_similarities_with_thresholds() -> None:
    names = r"(similarity|best|score)\)?", r"(\w+\.)?(threshold|unique_from|\$)"
    comparison = re.compile(r"\b" + " *[<>]=? *".join(names))
    files = sorted((Path(__file__).parents[2] / "sql/schema").glob("*.sql"))
    lines = [line for file in files for line in file.read_text().splitlines()]
    found = [line for line in lines if comparison.search(line)]
    assert found == ["RETURN similarity >= threshold;"]


def _places(path: Path) -> Iterator[str]:
    """Yield the functions of a module with a comparison of a threshold."""
    text = path.read_text()
    if not any(name in text for name in THRESHOLDS):
        return
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef) and any(map(_decides, ast.walk(function))):
            yield f"{path.relative_to(PACKAGE)}:{function.name}"


def _decides(node: ast.AST) -> bool:
    """Say whether an expression compares a threshold with another value, such as a similarity."""
    orders = ast.Lt | ast.LtE | ast.Gt | ast.GtE
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], orders):
        return False
    sides = [node.left, *node.comparators]
    names = [{_name(part) for part in ast.walk(side)} & THRESHOLDS for side in sides]
    return any(names) and not all(names) and not any(isinstance(s, ast.Constant) for s in sides)


def _name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else None
