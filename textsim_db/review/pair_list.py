"""PairList: the pairs of a filter in their order, through which a person steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

import numpy as np

from textsim_db.results import Pair
from textsim_db.review.filter_and_order import ANY, JUDGED, Filter, moment_of
from textsim_db.review.judging import Judgements
from textsim_db.review.pair_arrays import Pairs
from textsim_db.review.reviewed import Text
from textsim_db.text.array_types import Int64Array

MOST_READ = 150
"""The pairs whose texts one page searches."""
_READ_AT_ONCE = 50

TextsOf = Callable[[list[str]], Mapping[str, Text]]


class PairList:
    """The pairs of a filter.

    A place is that of a pair among the pairs with these properties, judged or not, from 0 on. It stays
    while pairs are judged, and a pair that is not listed has a place, too.
    """

    def __init__(
        self,
        pairs: Pairs,
        choice: Filter,
        members: list[str],
        judgements: Judgements,
        texts_of: TextsOf,
    ) -> None:
        """members: the keys of the cluster, if the filter names one."""
        self._pairs = pairs
        self._choice = choice
        self._texts_of = texts_of
        counted = [
            judgement
            for judgement in judgements.values()
            if choice.since is None or moment_of(judgement) <= choice.since
        ]
        self._order = choice.order_of(pairs, members, counted)
        judged = pairs.numbers_of(judgement[:2] for judgement in counted)
        is_judged = np.isin(self._order, judged)
        self.judged = int(np.count_nonzero(is_judged))
        """The pairs with these properties that are judged."""
        self.open = len(self._order) - self.judged
        """The pairs with these properties that are not judged."""
        is_listed = is_judged == (choice.state == JUDGED)
        self._places = np.flatnonzero(is_listed | (choice.state == ANY))

    def __len__(self) -> int:
        """Return the number of the listed pairs, whether they have the text of the filter or not."""
        return len(self._places)

    def place(self, a: str, b: str) -> int | None:
        """Return the place of a pair; None if it does not have these properties."""
        number = self._pairs.number(a, b)
        if number is None:
            return None
        places = np.flatnonzero(self._order == number)
        return int(places[0]) if len(places) else None

    def position(self, place: int) -> int | None:
        """Return the position of a place among the listed pairs; None if its pair is not listed."""
        position = int(np.searchsorted(self._places, place))
        is_listed = position < len(self) and self._places[position] == place
        return position if is_listed else None

    def from_place(self, place: int) -> Iterator[tuple[int, Pair]]:
        """Yield places and pairs from a place on.

        With a text, only as many pairs are searched as a page can read in moments.
        """
        return self._with_text(self._places[np.searchsorted(self._places, place) :])

    def before(self, place: int) -> Iterator[tuple[int, Pair]]:
        """Yield places and pairs before a place, the last one first, as from_place does."""
        return self._with_text(self._places[: np.searchsorted(self._places, place)][::-1])

    def _with_text(self, places: Int64Array) -> Iterator[tuple[int, Pair]]:
        pairs = ((place, self._pairs.pair(int(self._order[place]))) for place in map(int, places))
        if not self._choice.text:
            yield from pairs
            return
        searched = islice(pairs, MOST_READ)
        while part := list(islice(searched, _READ_AT_ONCE)):
            texts = self._texts_of(sorted({key for _, pair in part for key in pair[:2]}))
            yield from (each for each in part if self._has_text(each[1], texts))

    def _has_text(self, pair: Pair, texts: Mapping[str, Text]) -> bool:
        wanted = self._choice.text.casefold()
        return any(
            wanted in key.casefold() or (key in texts and wanted in texts[key].text.casefold())
            for key in pair[:2]
        )
