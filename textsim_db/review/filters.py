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
from textsim_db.review.survey import Pairs
from textsim_db.text.array_types import Int64Array

_MOST_READ = 100
"""The pairs whose texts one page searches."""
_ANY, _OPEN, _JUDGED = "any", "open", "judged"
STATES = {_OPEN: "not judged", _JUDGED: "judged", _ANY: "all"}
NEAR, SPREAD = "near", "spread"
ORDERS = {NEAR: "nearest to a threshold first", SPREAD: "a fair sample of all similarities"}


class Filter(NamedTuple):
    """A choice of pairs, as the address of a page says it."""

    low: float = 0.0
    high: float = 1.0
    state: str = _OPEN
    order: str = NEAR
    text: str = ""
    blind: bool = False
    around: float | None = None
    """The similarity that NEAR means; None: the threshold of the corpus."""

    @classmethod
    def of_query(cls, query: Mapping[str, str]) -> Filter:
        """Read a filter; a value that makes no sense counts as its default."""
        return cls(
            fraction(query.get("low"), 0.0),
            fraction(query.get("high"), 1.0),
            query.get("state", _OPEN) if query.get("state") in STATES else _OPEN,
            query.get("order", NEAR) if query.get("order") in ORDERS else NEAR,
            query.get("text", ""),
            query.get("blind") == "1",
            fraction(query["around"], 0.0) if query.get("around") else None,
        )

    def query(self, **more: object) -> str:
        """Return the filter as the query of an address; more: other parameters."""
        own = {**self._asdict(), "blind": int(self.blind)}
        default = {**Filter()._asdict(), "blind": 0}
        changed = {name: value for name, value in own.items() if value != default[name]}
        return urlencode({**changed, **more})

    def order_of(self, pairs: Pairs) -> Int64Array:
        """Return the numbers of the pairs of the range of similarity, in their order."""
        order = pairs.spread
        if self.order == NEAR:
            order = pairs.near if self.around is None else pairs.nearest(self.around)
        similarity = pairs.links.similarity[order]
        return order[(similarity >= self.low) & (similarity <= self.high)]

    def listed(
        self,
        pairs: Pairs,
        order: Int64Array,
        start: int,
        judgements: Judgements,
        form_of: Callable[[str], str],
    ) -> Iterator[tuple[int, Pair]]:
        """Yield places and pairs from a place of the order on.

        With a text, only as many pairs are searched as a page can read in moments.
        """
        places = iter(range(start, len(order)))
        found = (
            (place, pair)
            for place in places
            if self._has_state(pair := pairs.pair(int(order[place])), judgements)
        )
        if not self.text:
            yield from found
            return
        text = self.text.casefold()
        for place, pair in islice(found, _MOST_READ):
            if any(text in key.casefold() for key in pair[:2]) or any(
                text in form_of(key).casefold() for key in pair[:2]
            ):
                yield place, pair

    def _has_state(self, pair: Pair, judgements: Judgements) -> bool:
        is_judged = (pair.a, pair.b) in judgements
        return self.state == _ANY or is_judged == (self.state == _JUDGED)


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
