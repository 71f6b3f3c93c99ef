"""Which pairs the pages list, and in which order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple
from urllib.parse import urlencode

import numpy as np

from textsim_db.results import Pair
from textsim_db.review.judging import Judgements
from textsim_db.review.pair_table import Column, Pairs
from textsim_db.review.reviewed import Text
from textsim_db.text.array_types import BoolArray, Int64Array

_MOST_READ = 150
"""The pairs whose texts one page searches."""
_READ_AT_ONCE = 50
_ANY, _OPEN, _JUDGED = "any", "open", "judged"
STATES = {_OPEN: "not judged", _JUDGED: "judged", _ANY: "all"}
TEACHING, NEAR, WARNED, SPREAD = "teaching", "near", "warned", "spread"
ORDERS = {
    TEACHING: "what teaches most first",
    NEAR: "nearest to a threshold first",
    WARNED: "only numbers, dates and the like differ",
    SPREAD: "a fair sample of all similarities",
}

TextsOf = Callable[[list[str]], Mapping[str, Text]]


class Filter(NamedTuple):
    """A choice of pairs, as the address of a page says it."""

    low: float = 0.0
    high: float = 1.0
    state: str = _OPEN
    order: str = TEACHING
    text: str = ""
    blind: bool = False
    around: float | None = None
    """The similarity that NEAR means; None: the threshold in use."""
    language: str = ""
    """Both documents have this language; empty: any."""
    scope: str = ""
    cluster: str = ""
    """Both documents are in the cluster of this key; empty: any pair."""

    @classmethod
    def of_query(cls, query: Mapping[str, str]) -> Filter:
        """Read a filter; a value that makes no sense counts as its default."""
        around = fraction(query["around"], 0.0) if query.get("around") else None
        default = TEACHING if around is None else NEAR
        return cls(
            fraction(query.get("low"), 0.0),
            fraction(query.get("high"), 1.0),
            query.get("state", _OPEN) if query.get("state") in STATES else _OPEN,
            query.get("order", default) if query.get("order") in ORDERS else default,
            query.get("text", ""),
            query.get("blind") == "1",
            around,
            query.get("language", ""),
            query.get("scope", ""),
            query.get("cluster", ""),
        )

    def query(self, **more: object) -> str:
        """Return the filter as the query of an address; more: other parameters."""
        own = {**self._asdict(), "blind": int(self.blind)}
        default = {**Filter()._asdict(), "blind": 0}
        changed = {name: value for name, value in own.items() if value != default[name]}
        return urlencode({**changed, **more})

    def order_of(self, pairs: Pairs, members: list[str]) -> Int64Array:
        """Return the numbers of the pairs with these properties, in their order.

        members: the keys of the cluster, if one is chosen.
        """
        order = self._ordered(pairs)
        chosen = np.ones(len(order), np.bool_)
        if (self.low, self.high) != (0.0, 1.0):
            similarity = pairs.links.similarity[order]
            chosen &= (similarity >= self.low) & (similarity <= self.high)
        for documents in self._documents(pairs, members):
            chosen &= documents[pairs.links.left[order]] & documents[pairs.links.right[order]]
        return order[chosen]

    def _ordered(self, pairs: Pairs) -> Int64Array:
        if self.order == NEAR:
            return pairs.near if self.around is None else pairs.nearest(self.around)
        return {TEACHING: pairs.teaching, WARNED: pairs.warned, SPREAD: pairs.spread}[self.order]

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

    def listed(
        self,
        pairs: Pairs,
        order: Int64Array,
        start: int,
        judgements: Judgements,
        texts_of: TextsOf,
    ) -> Iterator[tuple[int, Pair]]:
        """Yield places and pairs from a place of the order on.

        With a text, only as many pairs are searched as a page can read in moments.
        """
        places = np.arange(start, len(order))
        if self.state != _ANY:
            is_judged = np.isin(order[start:], pairs.numbers_of(judgements))
            places = places[is_judged == (self.state == _JUDGED)]
        found = ((place, pairs.pair(int(order[place]))) for place in map(int, places))
        if not self.text:
            yield from found
            return
        searched = islice(found, _MOST_READ)
        while part := list(islice(searched, _READ_AT_ONCE)):
            texts = texts_of(sorted({key for _, pair in part for key in pair[:2]}))
            yield from (each for each in part if self._has_text(each[1], texts))

    def _has_text(self, pair: Pair, texts: Mapping[str, Text]) -> bool:
        wanted = self.text.casefold()
        return any(
            wanted in key.casefold() or (key in texts and wanted in texts[key].text.casefold())
            for key in pair[:2]
        )


def place_of(order: Int64Array, number: int | None) -> int | None:
    """Return the place of a pair in an order, or None."""
    if number is None:
        return None
    places = np.flatnonzero(order == number)
    return int(places[0]) if len(places) else None


def fraction(text: str | None, default: float) -> float:
    """Read a number from 0 to 1."""
    try:
        value = float(text or "")
    except ValueError:
        return default
    return min(max(value, 0.0), 1.0) if math.isfinite(value) else default


def _having(column: Column, name: str, documents: int) -> BoolArray:
    """Return which documents have a value."""
    if name not in column.names:
        return np.zeros(documents, np.bool_)
    return np.asarray(column.places == column.names.index(name))
