"""Judgements, and judgements that contradict each other."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple


class Judgement(NamedTuple):
    """The opinion of a person on two documents, which need not exist."""

    a: str
    """The key of one document; `a` < `b`."""
    b: str
    """The key of the other document."""
    verdict: str
    """The verdict: "same", "different" or "unsure"."""
    judged_by: str
    """The role of the database that judged the pair."""
    judged_at: datetime
    """When it did so."""
    note: str | None
    """Why, or anything else."""


class Contradiction(NamedTuple):
    """Two documents that were judged different, although a chain of the verdict "same" connects them."""

    a: str
    """The key of one document; `a` < `b`."""
    b: str
    """The key of the other document."""
    chain: tuple[str, ...]
    """The keys of a shortest chain, from `a` to `b`."""
