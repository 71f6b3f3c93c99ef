"""The pages: requests in, HTML out."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

import jinja2
import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from textsim_db.corpus import Corpus
from textsim_db.diff.html_page import warning
from textsim_db.errors import (
    DatabaseError,
    DocumentNotFound,
    JudgementExists,
    TextsimError,
    shown,
)
from textsim_db.review import estimates
from textsim_db.review.clusters import ShownCluster, clusters_of, events_of
from textsim_db.review.filters import ORDERS, STATES, Filter, fraction, place_of
from textsim_db.review.judging import Judgements, Judging, mark
from textsim_db.review.side_by_side import compare_forms
from textsim_db.review.survey import STEPS, Pairs, Survey
from textsim_db.settings import Verdict

_FOLDER = Path(__file__).parent
_ON_A_PAGE = 25
_BESIDE = 3
_MOST_BYTES = 64_000
"""The bytes of a form; a note has up to 10,000."""
_MOST_MEMBERS = 500
_NO_RIGHT = "42501"
_MOST_EVENTS = 50


class Review:
    """The pages of one corpus."""

    def __init__(self, corpus: Corpus, threshold: float | None, read_only: bool) -> None:
        self._corpus = corpus
        self._read_only = read_only
        config = corpus.config
        is_lower = threshold is not None and threshold < config.threshold
        self._incomplete_below = config.threshold if is_lower else None
        self._judging = Judging(corpus)
        self.survey = Survey(corpus, threshold)
        """Reads the pairs; the caller starts and stops it."""
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(_FOLDER / "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= {
            "shown": shown, "similarity": _similarity, "count": _count, "time": _time, "mark": mark
        }  # fmt: skip

    def app(self) -> ASGIApp:
        """Return the application, which a Guard has to protect."""
        pages: dict[str, Callable[[Request, Pairs], Response]] = {
            "/": self._overview,
            "/effect": self._effect,
            "/pairs": self._pairs,
            "/pair": self._pair,
            "/clusters": self._clusters,
            "/cluster": self._cluster,
            "/precision": self._precision,
        }
        return Starlette(
            routes=[
                *(Route(path, partial(self._page, page)) for path, page in pages.items()),
                Route("/judge", self._judge, methods=["POST"]),
                Route("/undo", self._undo, methods=["POST"]),
                Mount("/static", StaticFiles(directory=_FOLDER / "static")),
            ],
            exception_handlers={TextsimError: self._failed, HTTPException: self._refused},
        )

    def _page(self, page: Callable[[Request, Pairs], Response], request: Request) -> Response:
        """Return a page, or while pairs are read how far that is."""
        if self.survey.error is not None:
            raise self.survey.error
        if self.survey.pairs is None:
            return self._render("reading.html", count=self.survey.count)
        return page(request, self.survey.pairs)

    def _overview(self, request: Request, pairs: Pairs) -> Response:
        return self._render(
            "overview.html",
            documents=len(self._corpus),
            settings=self._corpus.config,
            bars=_bars(pairs),
            most=int(pairs.histogram.max(initial=1)),
            **self._at_threshold(request, pairs),
        )

    def _effect(self, request: Request, pairs: Pairs) -> Response:
        return self._render("effect.html", **self._at_threshold(request, pairs))

    def _at_threshold(self, request: Request, pairs: Pairs) -> dict[str, object]:
        threshold = self._threshold(request)
        above, below = pairs.beside(threshold, _BESIDE)
        return {"effect": pairs.effect(threshold), "above": above, "below": below}

    def _pairs(self, request: Request, pairs: Pairs) -> Response:
        choice = Filter.of_query(request.query_params)
        start = _whole_number(request.query_params.get("start"))
        order, judgements = choice.order_of(pairs), self._judging.all()
        listed = choice.listed(pairs, order, start, judgements, self._form_of)
        rows = list(islice(listed, _ON_A_PAGE))
        return self._render(
            "pairs.html",
            choice=choice,
            rows=[(pair, judgements.get((pair.a, pair.b))) for _, pair in rows],
            chosen=len(order),
            kept=len(pairs.links.left),
            total=len(pairs),
            states=STATES,
            orders=ORDERS,
            more=rows[-1][0] + 1 if len(rows) == _ON_A_PAGE else None,
            start=start,
        )

    def _pair(self, request: Request, pairs: Pairs) -> Response:
        return self._pair_page(request, pairs)

    def _pair_page(
        self, request: Request, pairs: Pairs, message: str = "", status: int = 200
    ) -> Response:
        a, b = _two_keys(request)
        judgements, choice = self._judging.all(), Filter.of_query(request.query_params)
        number = pairs.number(a, b)
        order = choice.order_of(pairs)
        place = place_of(order, number)
        compared = compare_forms(self._form_of(a), self._form_of(b))
        before = pairs.pair(int(order[place - 1])) if place else None
        return self._render(
            "pair.html",
            status,
            a=a,
            b=b,
            here=choice.query(a=a, b=b),
            choice=choice,
            similarity=None if number is None else pairs.pair(number).similarity,
            judgement=judgements.get((a, b)),
            compared=compared,
            warning=warning(compared.distinctions),
            place=place,
            chosen=len(order),
            before=before and choice.query(a=before.a, b=before.b),
            after=self._after(pairs, choice, a, b, judgements),
            verdicts=list(Verdict),
            message=message,
        )

    def _after(
        self, pairs: Pairs, choice: Filter, a: str, b: str, judgements: Judgements
    ) -> str | None:
        """Return the query of the next pair, if there is one."""
        order = choice.order_of(pairs)
        place = place_of(order, pairs.number(a, b))
        start = 0 if place is None else place + 1
        for _, pair in choice.listed(pairs, order, start, judgements, self._form_of):
            if (pair.a, pair.b) != (a, b):
                return choice.query(a=pair.a, b=pair.b)
        return None

    async def _judge(self, request: Request) -> Response:
        form = await _form(request)
        return await run_in_threadpool(self._judge_pair, request, form)

    def _judge_pair(self, request: Request, form: dict[str, str]) -> Response:
        self._check_writable()
        a, b = _two_keys(request)
        if form.get("verdict") not in list(Verdict):
            raise HTTPException(400, "the form has no verdict")
        # A browser sends line breaks as CR and LF.
        note = form.get("note", "").replace("\r\n", "\n") or None
        pairs = self.survey.pairs
        try:
            self._judging.judge(a, b, form.get("verdict", ""), note, form.get("seen", ""))
        except JudgementExists as error:
            if pairs is None:
                raise
            return self._pair_page(request, pairs, str(error), 409)
        cluster = request.query_params.get("cluster")
        if cluster is not None:
            # The threshold of the page of clusters is that of the whole corpus unless it says otherwise.
            threshold = request.query_params.get("threshold", "")
            return _see("/cluster?" + urlencode({"key": cluster, "threshold": threshold}))
        choice = Filter.of_query(request.query_params)
        after = pairs and self._after(pairs, choice, a, b, self._judging.all())
        return _see("/pair?" + (after or choice.query(a=a, b=b)))

    async def _undo(self, request: Request) -> Response:
        await _form(request)
        return await run_in_threadpool(self._undo_last, request)

    def _undo_last(self, request: Request) -> Response:
        self._check_writable()
        undone = self._judging.undo()
        choice = Filter.of_query(request.query_params)
        return _see("/pair?" + choice.query(a=undone.a, b=undone.b) if undone else "/pairs")

    def _clusters(self, request: Request, pairs: Pairs) -> Response:
        threshold = self._threshold(request)
        start = _whole_number(request.query_params.get("start"))
        clusters = self._clusters_at(pairs, threshold)
        return self._render(
            "clusters.html",
            clusters=clusters[start : start + _ON_A_PAGE],
            total=len(clusters),
            threshold=threshold,
            start=start,
            more=start + _ON_A_PAGE if start + _ON_A_PAGE < len(clusters) else None,
            tracked=self._corpus.status().linkage,
        )

    def _cluster(self, request: Request, pairs: Pairs) -> Response:
        threshold = self._threshold(request)
        key = request.query_params.get("key", "")
        for cluster in self._clusters_at(pairs, threshold):
            if key in cluster.keys:
                return self._cluster_page(cluster, threshold)
        raise DocumentNotFound(f'no cluster has the document "{shown(key)}" by now')

    def _cluster_page(self, cluster: ShownCluster, threshold: float) -> Response:
        first = cluster.representative
        judgements = self._judging.all()
        rows = [
            (key, tuple(sorted((key, first))))
            for key in cluster.keys[:_MOST_MEMBERS]
            if key != first
        ]
        return self._render(
            "cluster.html",
            cluster=cluster,
            threshold=threshold,
            rows=[(key, pair, judgements.get((pair[0], pair[1]))) for key, pair in rows],
            left_out=max(len(cluster.keys) - _MOST_MEMBERS, 0),
            events=events_of(self._corpus, cluster, _MOST_EVENTS),
            verdicts=list(Verdict),
            address=lambda pair: urlencode(
                {"a": pair[0], "b": pair[1], "cluster": first, "threshold": threshold}
            ),
        )

    def _clusters_at(self, pairs: Pairs, threshold: float) -> list[ShownCluster]:
        return clusters_of(self._corpus, pairs, threshold)

    def _precision(self, request: Request, pairs: Pairs) -> Response:
        verdicts = self._verdicts(pairs)
        first = _bars(pairs)[0][0]
        found = [
            estimates.precision(verdicts, pairs.histogram, step / STEPS)
            for step in range(first, STEPS + 1)
        ]
        rows = [row for row in found if row is not None]
        suggestion = estimates.suggest(verdicts, pairs.histogram)
        at = next(
            (row for row in rows if suggestion and row.threshold == suggestion.threshold), None
        )
        return self._render(
            "precision.html",
            rows=[row for row in rows if round(row.threshold * STEPS) % 5 == 0 or row is at],
            suggestion=suggestion,
            at=at,
            judged=len(verdicts.is_same),
            fewest=estimates.FEWEST,
            half_width=estimates.HALF_WIDTH,
            effect=pairs.effect(suggestion.threshold) if suggestion else None,
            name=shlex.quote(self._corpus.name),
            current=self._corpus.config.threshold,
        )

    def _verdicts(self, pairs: Pairs) -> estimates.Verdicts:
        """Return the judged pairs among the kept pairs, without those that somebody is unsure of."""
        judged = [
            (pairs.links.similarity[number], judgement.verdict == Verdict.SAME)
            for (a, b), judgement in self._judging.all().items()
            if judgement.verdict != Verdict.UNSURE and (number := pairs.number(a, b)) is not None
        ]
        return estimates.Verdicts(
            np.array([similarity for similarity, _ in judged], float),
            np.array([is_same for _, is_same in judged], np.bool_),
        )

    def _threshold(self, request: Request) -> float:
        """Return the threshold of an address in hundredths."""
        given = fraction(request.query_params.get("threshold"), self._corpus.config.threshold)
        return round(given * STEPS) / STEPS

    def _form_of(self, key: str) -> str:
        return self._corpus.normal_form(key)

    def _check_writable(self) -> None:
        if self._read_only:
            raise HTTPException(403, "this review was started with --read-only")

    def _failed(self, request: Request, error: Exception) -> Response:
        if getattr(error.__cause__, "sqlstate", None) == _NO_RIGHT:
            return self._error(403, f"the database refuses this to your role: {error}")
        if isinstance(error, DocumentNotFound):
            return self._error(404, str(error))
        status = 503 if isinstance(error, DatabaseError) else 409
        return self._error(status if not isinstance(error, ValueError) else 400, str(error))

    def _refused(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return self._error(error.status_code, error.detail)

    def _error(self, status: int, message: str) -> Response:
        return self._render("error.html", status, message=shown(message))

    def _render(self, template: str, status: int = 200, /, **values: Any) -> Response:
        page = self._templates.get_template(template).render(
            corpus=self._corpus.name,
            read_only=self._read_only,
            incomplete_below=self._incomplete_below,
            last=self._judging.last,
            **values,
        )
        return HTMLResponse(page, status)


async def _form(request: Request) -> dict[str, str]:
    """Return the fields of a form, which is small."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_BYTES:
            raise HTTPException(413, "the form is too long")
    fields = parse_qs(body.decode(errors="replace"), keep_blank_values=True)
    return {name: values[-1] for name, values in fields.items()}


def _two_keys(request: Request) -> tuple[str, str]:
    """Return the keys of an address in order; they are no fields, because forms change line breaks."""
    a, b = (request.query_params.get(name) for name in ("a", "b"))
    if a is None or b is None or a == b:
        raise HTTPException(400, "the address names no pair")
    return min(a, b), max(a, b)


def _see(address: str) -> Response:
    return RedirectResponse(address, 303)


def _whole_number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else 0


def _bars(pairs: Pairs) -> list[tuple[int, int]]:
    """Return each hundredth with its pairs, from the first one with a pair."""
    places = np.flatnonzero(pairs.histogram)
    first = int(places[0]) if len(places) else STEPS
    return [(step, int(pairs.histogram[step])) for step in range(first, STEPS + 1)]


def _similarity(value: float) -> str:
    return "0.999" if 0.9995 <= value < 1 else f"{value:.3f}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _time(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M}"
