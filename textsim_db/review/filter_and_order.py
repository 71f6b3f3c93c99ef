"""Which pairs the pages list, and in which order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import urlencode

import numpy as np

from textsim_db.results import Judgement
from textsim_db.review.pair_arrays import Column, Pairs
from textsim_db.review.reviewed import Judgements
from textsim_db.review.threshold_estimates import settling_order
from textsim_db.text.numba_compiler import BoolArray, Int64Array

ANY, OPEN, JUDGED = "any", "open", "judged"
STATES = {OPEN: "not judged", JUDGED: "judged", ANY: "all"}
TEACHING, NEAR, WARNED, SPREAD_OUT = "teaching", "near", "warned", "spread"
SETTLING = "settling"
ORDERS = {
    TEACHING: "most useful first",
    NEAR: "nearest to a threshold first",
    WARNED: "only numbers, dates and the like differ",
    SPREAD_OUT: "a fair sample of all similarities",
    SETTLING: "where a judgement settles the precision most",
}


class Filter(NamedTuple):
    """A choice of pairs, as the address of a page says it."""

    low: float = 0.0
    high: float = 1.0
    state: str = OPEN
    order: str = TEACHING
    text: str = ""
    blind: bool = False
    around: float | None = None
    """The similarity that NEAR means, and the threshold that SETTLING means; None: the one in use."""
    language: str = ""
    """Both documents have this language; empty: any."""
    scope: str = ""
    cluster: str = ""
    """Both documents are in the cluster of this key; empty: any pair."""
    since: float | None = None
    """A pair judged after this moment, in seconds since 1970, counts as not judged; None: none does."""

    @classmethod
    def of_query(cls, query: Mapping[str, str]) -> Filter:
        """Read a filter; a value that makes no sense counts as its default."""
        around = fraction(query["around"], 0.0) if query.get("around") else None
        default = TEACHING if around is None else NEAR
        return cls(
            fraction(query.get("low"), 0.0),
            fraction(query.get("high"), 1.0),
            query.get("state", OPEN) if query.get("state") in STATES else OPEN,
            query.get("order", default) if query.get("order") in ORDERS else default,
            query.get("text", ""),
            query.get("blind") == "1",
            around,
            query.get("language", ""),
            query.get("scope", ""),
            query.get("cluster", ""),
            moment(query.get("since")),
        )

    def fixed(self, judgements: Judgements) -> Filter:
        """Return the filter of a list that stays as it is while its pairs are judged."""
        if self.since is not None or self.state != OPEN:
            return self
        return self._replace(since=max(map(moment_of, judgements.values()), default=0.0))

    def query(self, **more: object) -> str:
        """Return the filter as the query of an address; more: other parameters."""
        own = {**self._asdict(), "blind": int(self.blind)}
        default = {**Filter()._asdict(), "blind": 0}
        changed = {name: value for name, value in own.items() if value != default[name]}
        return urlencode({**changed, **more})

    def order_of(self, pairs: Pairs, members: list[str], judgements: list[Judgement]) -> Int64Array:
        """Return the numbers of the pairs with these properties in their order, judged or not.

        members: the keys of the cluster, if one is chosen.
        """
        order = self._ordered(pairs, judgements)
        chosen = np.ones(len(order), np.bool_)
        if (self.low, self.high) != (0.0, 1.0):
            similarity = pairs.links.similarity[order]
            chosen &= (similarity >= self.low) & (similarity <= self.high)
        for documents in self._documents(pairs, members):
            chosen &= documents[pairs.links.left[order]] & documents[pairs.links.right[order]]
        return order[chosen]

    def _ordered(self, pairs: Pairs, judgements: list[Judgement]) -> Int64Array:
        if self.order == SETTLING:
            return settling_order(pairs, judgements, self.around or 0.0)
        if self.order == NEAR:
            return pairs.near if self.around is None else pairs.nearest(self.around)
        return {TEACHING: pairs.teaching, WARNED: pairs.warned, SPREAD_OUT: pairs.spread}[
            self.order
        ]

    def _documents(self, pairs: Pairs, members: list[str]) -> Iterator[BoolArray]:
        """Yield for each property which documents have it."""
        if self.language:
            yield _having(pairs.languages, self.language, len(pairs.keys))
        if self.scope:
            yield _having(pairs.scopes, self.scope, len(pairs.keys))
        if self.cluster:
            chosen = np.zeros(len(pairs.keys), np.bool_)
            numbers = (pairs.document(key) for key in members)
            chosen[[number for number in numbers if number is not None]] = True
            yield chosen


def fraction(text: str | None, default: float) -> float:
    """Read a number from 0 to 1."""
    try:
        value = float(text or "")
    except ValueError:
        return default
    return min(max(value, 0.0), 1.0) if math.isfinite(value) else default


def moment(text: str | None) -> float | None:
    """Read a moment, in seconds since 1970."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def moment_of(judgement: Judgement) -> float:
    """Return the moment of a judgement, in seconds since 1970."""
    return judgement.judged_at.timestamp()


def _having(column: Column, name: str, documents: int) -> BoolArray:
    """Return which documents have a value."""
    if name not in column.names:
        return np.zeros(documents, np.bool_)
    return np.asarray(column.places == column.names.index(name))
