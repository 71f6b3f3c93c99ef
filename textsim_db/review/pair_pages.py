"""The pages of pairs: the list, two texts side by side, and the verdicts."""

from __future__ import annotations

from itertools import islice

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from textsim_db.diff.html_page import warning
from textsim_db.errors import JudgementExists
from textsim_db.results import Pair
from textsim_db.review.filter_and_order import OPEN, ORDERS, STATES, Filter
from textsim_db.review.judging import Judgements
from textsim_db.review.pair_arrays import Pairs
from textsim_db.review.pair_list import MOST_READ, PairList
from textsim_db.review.side_by_side import compare_texts
from textsim_db.review.site import ON_A_PAGE, Site, form_of, see, two_keys, whole_number
from textsim_db.settings import Verdict


class PairPages:
    """The list of pairs, and each pair."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def pairs(self, request: Request, pairs: Pairs) -> Response:
        """Return the list of pairs."""
        site, choice = self._site, Filter.of_query(request.query_params)
        start = whole_number(request.query_params.get("start"))
        judgements = site.judging.all()
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
            states=STATES,
            orders=ORDERS,
            languages=pairs.languages.names,
            scopes=pairs.scopes.names,
            more=rows[-1][0] + 1 if len(rows) == ON_A_PAGE else None,
            start=start,
        )

    async def judge(self, request: Request) -> Response:
        """Record a verdict."""
        form = await form_of(request)
        return await run_in_threadpool(self._judge, request, form)

    async def undo(self, request: Request) -> Response:
        """Take the last verdict back."""
        await form_of(request)
        return await run_in_threadpool(self._undo, request)

    def _list(self, pairs: Pairs, choice: Filter, judgements: Judgements) -> PairList:
        """Return the pairs of a choice; a cluster is that at the threshold in use."""
        members: list[str] = []
        if choice.cluster:
            clusters = self._site.clusters(pairs, self._site.reviewed.threshold, judgements)
            cluster = clusters.cluster_of(choice.cluster)
            members = [] if cluster is None else cluster.keys
        return PairList(pairs, choice, members, judgements, self._site.reviewed.texts)

    def pair(
        self, request: Request, pairs: Pairs, message: str = "", status: int = 200
    ) -> Response:
        """Return two texts side by side."""
        site = self._site
        a, b = two_keys(request)
        judgements = site.judging.all()
        choice = Filter.of_query(request.query_params).fixed(judgements)
        listed = self._list(pairs, choice, judgements)
        number, place = pairs.number(a, b), listed.place(a, b)
        before = None if place is None else next(listed.before(place), None)
        after = next(listed.from_place(0 if place is None else place + 1), None)
        one, other = site.texts(a, b)
        compared = compare_texts(one, other)
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
        listed = self._list(pairs, choice, judgements)
        place = listed.place(a, b)
        for _, pair in listed.from_place(0 if place is None else place + 1):
            if choice.state != OPEN or (pair.a, pair.b) not in judgements:
                return _query(choice, pair)
        return None

    def _judge(self, request: Request, form: dict[str, str]) -> Response:
        site, pairs = self._site, self._site.survey.pairs
        site.check_writable()
        a, b = two_keys(request)
        verdict = form.get("verdict", "")
        if verdict not in list(Verdict):
            raise HTTPException(400, "the form has no verdict")
        # A browser sends line breaks as CR and LF.
        note = form.get("note", "").replace("\r\n", "\n") or None
        try:
            site.judging.judge(a, b, verdict, note, form.get("seen", ""))
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

    def _undo(self, request: Request) -> Response:
        self._site.check_writable()
        undone = self._site.judging.undo()
        choice = Filter.of_query(request.query_params)
        return see("pair?" + choice.query(a=undone.a, b=undone.b) if undone else "pairs")


def _query(choice: Filter, pair: Pair) -> str:
    return choice.query(a=pair.a, b=pair.b)
