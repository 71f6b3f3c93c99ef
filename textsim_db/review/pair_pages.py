"""The pages of pairs: the list, two texts side by side, and the verdicts."""

from __future__ import annotations

from itertools import islice

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from textsim_db.diff.html_page import warning
from textsim_db.errors import JudgementExists
from textsim_db.review.filters import ORDERS, STATES, Filter, place_of
from textsim_db.review.judging import Judgements
from textsim_db.review.pair_table import Pairs
from textsim_db.review.side_by_side import compare_texts
from textsim_db.review.site import ON_A_PAGE, Site, form_of, see, two_keys, whole_number
from textsim_db.settings import Verdict
from textsim_db.text.array_types import Int64Array


class PairPages:
    """The list of pairs, and each pair."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def pairs(self, request: Request, pairs: Pairs) -> Response:
        """Return the list of pairs."""
        site, choice = self._site, Filter.of_query(request.query_params)
        start = whole_number(request.query_params.get("start"))
        judgements = site.judging.all()
        order = self._order(pairs, choice, judgements)
        listed = choice.listed(pairs, order, start, judgements, site.reviewed.texts)
        rows = list(islice(listed, ON_A_PAGE))
        return site.render(
            "pairs.html",
            choice=choice,
            rows=site.rows([pair for _, pair in rows], judgements),
            chosen=len(order),
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

    def pair(self, request: Request, pairs: Pairs) -> Response:
        """Return two texts side by side."""
        return self._pair_page(request, pairs)

    async def judge(self, request: Request) -> Response:
        """Record a verdict."""
        form = await form_of(request)
        return await run_in_threadpool(self._judge, request, form)

    async def undo(self, request: Request) -> Response:
        """Take the last verdict back."""
        await form_of(request)
        return await run_in_threadpool(self._undo, request)

    def _order(self, pairs: Pairs, choice: Filter, judgements: Judgements) -> Int64Array:
        """Return the pairs of a choice in order; a cluster is that at the threshold in use."""
        members: list[str] = []
        if choice.cluster:
            clusters = self._site.clusters(pairs, self._site.reviewed.threshold, judgements)
            cluster = clusters.cluster_of(choice.cluster)
            members = [] if cluster is None else cluster.keys
        return choice.order_of(pairs, members)

    def _pair_page(
        self, request: Request, pairs: Pairs, message: str = "", status: int = 200
    ) -> Response:
        site, choice = self._site, Filter.of_query(request.query_params)
        a, b = two_keys(request)
        judgements = site.judging.all()
        number = pairs.number(a, b)
        order = self._order(pairs, choice, judgements)
        place = place_of(order, number)
        one, other = site.texts(a, b)
        compared = compare_texts(one, other)
        before = pairs.pair(int(order[place - 1])) if place else None
        return site.render(
            "pair.html",
            status,
            a=a,
            b=b,
            here=choice.query(a=a, b=b),
            choice=choice,
            similarity=None if number is None else pairs.pair(number).similarity,
            judgement=judgements.get((a, b)),
            compared=compared,
            originals=(one.is_original, other.is_original),
            warning=warning(compared.distinctions),
            place=place,
            chosen=len(order),
            before=before and choice.query(a=before.a, b=before.b),
            after=self._after(pairs, choice, (a, b), order, judgements),
            verdicts=list(Verdict),
            message=message,
        )

    def _after(
        self,
        pairs: Pairs,
        choice: Filter,
        pair: tuple[str, str],
        order: Int64Array,
        judgements: Judgements,
    ) -> str | None:
        """Return the query of the next pair, if there is one."""
        place = place_of(order, pairs.number(*pair))
        start = 0 if place is None else place + 1
        texts_of = self._site.reviewed.texts
        for _, found in choice.listed(pairs, order, start, judgements, texts_of):
            if (found.a, found.b) != pair:
                return choice.query(a=found.a, b=found.b)
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
            return self._pair_page(request, pairs, str(error), 409)
        cluster = request.query_params.get("of_cluster")
        if cluster is not None:
            threshold = request.query_params.get("threshold", "")
            return see("/cluster", key=cluster, threshold=threshold)
        choice = Filter.of_query(request.query_params)
        after = None
        if pairs is not None:
            judgements = site.judging.all()
            order = self._order(pairs, choice, judgements)
            after = self._after(pairs, choice, (a, b), order, judgements)
        return see("/pair?" + (after or choice.query(a=a, b=b)))

    def _undo(self, request: Request) -> Response:
        self._site.check_writable()
        undone = self._site.judging.undo()
        choice = Filter.of_query(request.query_params)
        return see("/pair?" + choice.query(a=undone.a, b=undone.b) if undone else "/pairs")
