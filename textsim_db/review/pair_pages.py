"""The pages of pairs: the list, its pairs one by one with texts side by side, and the verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple
from urllib.parse import urlencode

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from textsim_db.base.numba_compiler import BoolArray, Int64Array
from textsim_db.compare.match_rule import Criterion
from textsim_db.errors import JudgementExists
from textsim_db.measures.by_name import JACCARD
from textsim_db.measures.explanation import guard_notes, warning
from textsim_db.measures.word_diff import ShownText
from textsim_db.results import Judgement, Pair
from textsim_db.review.pair_arrays import Column, Pairs
from textsim_db.review.rendering import compare_texts
from textsim_db.review.site import (
    ON_A_PAGE,
    Judgements,
    Site,
    finite,
    fraction,
    see,
    two_keys,
    whole_number,
)
from textsim_db.review.survey import MOST_SIBLINGS, all_pairs
from textsim_db.review.threshold_estimates import settling_order
from textsim_db.settings.named_values import Verdict

ANY, OPEN, WAITING, SIBLING, JUDGED = "any", "open", "doubtful", "siblings", "judged"
STATES = {
    OPEN: "not judged",
    WAITING: "doubtful, not judged",
    SIBLING: "of siblings, not judged",
    JUDGED: "judged",
    ANY: "all",
}
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
            finite(query.get("since")),
        )

    def fixed(self, judgements: Judgements) -> Filter:
        """Return the filter of a list that stays as it is while its pairs are judged."""
        if self.since is not None or not self.is_open:
            return self
        return self._replace(since=max(map(moment_of, judgements.values()), default=0.0))

    @property
    def is_open(self) -> bool:
        return self.state in (OPEN, WAITING, SIBLING)

    def query(self, **more: object) -> str:
        own = {**self._asdict(), "blind": int(self.blind)}
        default = {**Filter()._asdict(), "blind": 0}
        changed = {name: value for name, value in own.items() if value != default[name]}
        return urlencode({**changed, **more})

    def order_of(self, pairs: Pairs, members: list[str], judgements: list[Judgement]) -> Int64Array:
        """Return the numbers of the pairs with these properties in their order, judged or not."""
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
        if self.language:
            yield _having(pairs.languages, self.language, len(pairs.keys))
        if self.scope:
            yield _having(pairs.scopes, self.scope, len(pairs.keys))
        if self.cluster:
            chosen = np.zeros(len(pairs.keys), np.bool_)
            numbers = (pairs.document(key) for key in members)
            chosen[[number for number in numbers if number is not None]] = True
            yield chosen


def moment_of(judgement: Judgement) -> float:
    return judgement.judged_at.timestamp()


def _having(column: Column, name: str, documents: int) -> BoolArray:
    if name not in column.names:
        return np.zeros(documents, np.bool_)
    return np.asarray(column.places == column.names.index(name))


MOST_READ = 150
"""The pairs whose texts one page searches."""
_READ_AT_ONCE = 50

TextsOf = Callable[[list[str]], Mapping[str, ShownText]]


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
        unique_from: float | None,
    ) -> None:
        """members: the keys of the cluster, if the filter names one."""
        self._pairs = pairs
        self._choice = choice
        self._texts_of = texts_of
        counted = [
            judgement
            for judgement in judgements.values()
            if not judgement.is_stale
            and (choice.since is None or moment_of(judgement) <= choice.since)
        ]
        self._order = choice.order_of(pairs, members, counted)
        if choice.state == WAITING:
            twins = Criterion(JACCARD, unique_from or 0, for_merges=True)
            self._order = self._order[~twins.accepted(pairs.links.similarity[self._order])]
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

    def from_place(self, place: int) -> Iterator[tuple[int, Pair[str]]]:
        """Yield places and pairs from a place on; with a text, only as many as a page can read."""
        return self._with_text(self._places[np.searchsorted(self._places, place) :])

    def before(self, place: int) -> Iterator[tuple[int, Pair[str]]]:
        """Yield places and pairs before a place, the last one first, as from_place does."""
        return self._with_text(self._places[: np.searchsorted(self._places, place)][::-1])

    def _with_text(self, places: Int64Array) -> Iterator[tuple[int, Pair[str]]]:
        pairs = ((place, self._pairs.pair(int(self._order[place]))) for place in map(int, places))
        if not self._choice.text:
            yield from pairs
            return
        searched = islice(pairs, MOST_READ)
        while batch := list(islice(searched, _READ_AT_ONCE)):
            texts = self._texts_of(sorted({key for _, pair in batch for key in pair[:2]}))
            yield from (each for each in batch if self._has_text(each[1], texts))

    def _has_text(self, pair: Pair[str], texts: Mapping[str, ShownText]) -> bool:
        wanted = self._choice.text.casefold()
        return any(
            wanted in key.casefold() or (key in texts and wanted in texts[key].text.casefold())
            for key in pair[:2]
        )


class PairPages:
    def __init__(self, site: Site) -> None:
        self._site = site

    def pairs(self, request: Request, pairs: Pairs) -> Response:
        site, choice = self._site, Filter.of_query(request.query_params)
        unused = {
            state
            for state, is_used in ((WAITING, site.has_doubtful), (SIBLING, site.has_siblings))
            if not is_used
        }
        start = whole_number(request.query_params.get("start"))
        judgements = site.judging.all()
        pairs = self._pairs_of(choice, pairs)
        listed = self._list(pairs, choice, judgements)
        rows = list(islice(listed.from_place(start), ON_A_PAGE))
        return site.render(
            "pairs.html",
            choice=choice,
            fixed=choice.fixed(judgements),
            rows=site.rows([pair for _, pair in rows], judgements),
            listed=listed,
            searched=MOST_READ,
            kept=len(pairs.links.left),
            total=len(pairs),
            sampled=pairs.sampled,
            states={k: v for k, v in STATES.items() if k not in unused},
            siblings_are_read=site.survey.siblings is not None,
            most_siblings=MOST_SIBLINGS,
            orders=ORDERS,
            languages=pairs.languages.names,
            scopes=pairs.scopes.names,
            more=rows[-1][0] + 1 if len(rows) == ON_A_PAGE else None,
            start=start,
        )

    def _pairs_of(self, choice: Filter, pairs: Pairs) -> Pairs:
        """Return the pairs that a choice is of: siblings are no pairs that may be merged."""
        if choice.state != SIBLING:
            return pairs
        return self._site.survey.siblings or all_pairs([], 0.0)

    async def judge(self, request: Request) -> Response:
        async with request.form(max_files=0) as form:
            return await run_in_threadpool(self._judge, request, form)

    def _list(self, pairs: Pairs, choice: Filter, judgements: Judgements) -> PairList:
        """Return the pairs of a choice; a cluster is that at the threshold in use."""
        members: list[str] = []
        if choice.cluster:
            clusters = self._site.clusters(pairs, self._site.reviewed.threshold, judgements)
            cluster = clusters.cluster_of(choice.cluster)
            members = [] if cluster is None else cluster.keys
        reviewed = self._site.reviewed
        return PairList(pairs, choice, members, judgements, reviewed.texts, reviewed.unique_from)

    def pair(
        self, request: Request, pairs: Pairs, message: str = "", status: int = 200
    ) -> Response:
        site = self._site
        a, b = two_keys(request)
        judgements = site.judging.all()
        choice = Filter.of_query(request.query_params).fixed(judgements)
        pairs = self._pairs_of(choice, pairs)
        listed = self._list(pairs, choice, judgements)
        number, place = pairs.number(a, b), listed.place(a, b)
        before = None if place is None else next(listed.before(place), None)
        after = next(listed.from_place(0 if place is None else place + 1), None)
        one, other = site.texts(a, b)
        compared = compare_texts(one, other)
        (guards,) = site.reviewed.guards_apart([Pair(a, b, 0.0)])
        return site.render(
            "pair.html",
            status,
            a=a,
            b=b,
            here=choice.query(a=a, b=b),
            choice=choice,
            to_list=choice._replace(since=None).query(),
            similarity=None if number is None else pairs.pair(number).similarity,
            judgement=judgements.get((a, b)),
            compared=compared,
            originals=(one.is_original, other.is_original),
            warning=warning(compared.distinctions),
            guard_notes=guard_notes(guards),
            position=None if place is None else listed.position(place),
            listed=listed,
            before=before and _query(choice, before[1]),
            after=after and _query(choice, after[1]),
            verdicts=list(Verdict),
            message=message,
        )

    def _to_judge(self, pairs: Pairs, choice: Filter, a: str, b: str) -> str | None:
        """Return the query of the pair to judge after a pair, if there is one."""
        judgements = self._site.judging.all()
        listed = self._list(self._pairs_of(choice, pairs), choice, judgements)
        place = listed.place(a, b)
        for _, pair in listed.from_place(0 if place is None else place + 1):
            judgement = judgements.get((pair.a, pair.b))
            if not choice.is_open or judgement is None or judgement.is_stale:
                return _query(choice, pair)
        return None

    def _judge(self, request: Request, form: FormData) -> Response:
        site, pairs = self._site, self._site.survey.pairs
        site.check_writable()
        a, b = two_keys(request)
        try:
            verdict = Verdict(str(form.get("verdict")))
        except ValueError:
            raise HTTPException(400, "the form has no verdict") from None
        # A browser sends line breaks as CR and LF.
        note = str(form.get("note", "")).replace("\r\n", "\n") or None
        try:
            site.judging.judge(a, b, verdict, note, str(form.get("seen", "")))
        except JudgementExists as error:
            if pairs is None:
                raise
            return self.pair(request, pairs, str(error), 409)
        cluster = request.query_params.get("of_cluster")
        if cluster is not None:
            threshold = request.query_params.get("threshold", "")
            return see("cluster", key=cluster, threshold=threshold)
        choice = Filter.of_query(request.query_params)
        after = None if pairs is None else self._to_judge(pairs, choice, a, b)
        return see("pair?" + (after or choice.query(a=a, b=b)))

    def undo(self, request: Request) -> Response:
        self._site.check_writable()
        undone = self._site.judging.undo()
        choice = Filter.of_query(request.query_params)
        return see("pair?" + choice.query(a=undone.a, b=undone.b) if undone else "pairs")


def _query(choice: Filter, pair: Pair[str]) -> str:
    return choice.query(a=pair.a, b=pair.b)
