"""Results of searches."""

from __future__ import annotations

from typing import Any, NamedTuple


class Match(NamedTuple):
    """A document that matches a query: its exact similarity reaches the threshold."""

    key: str
    """The key of the document."""
    similarity: float
    """The exact value of the measure, by default the Jaccard similarity."""
    estimate: float | None
    """The share of equal values in the two signatures; None in an exact corpus."""


class QueryMatch(NamedTuple):
    """A document that matches a row of a frame of queries."""

    query: Any
    """The row's value of the column `key`; its place, from 0 on, without this column."""
    key: str
    """The key of the document."""
    similarity: float
    """The exact value of the measure, by default the Jaccard similarity."""


class Candidate(NamedTuple):
    """A document that shares enough buckets with a query and is not verified."""

    key: str
    """The key of the document."""
    shared: int
    """The number of shared buckets."""
