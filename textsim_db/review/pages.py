"""The pages as an application: addresses, and the messages of errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from textsim_db.errors import DatabaseError, DocumentNotFound, TextsimError, lacks_right, shown
from textsim_db.review.cluster_pages import ClusterPages
from textsim_db.review.judgement_pages import JudgementPages
from textsim_db.review.overview_page import OverviewPage
from textsim_db.review.pair_arrays import Pairs
from textsim_db.review.pair_pages import PairPages
from textsim_db.review.precision_page import precision_page
from textsim_db.review.render import FOLDER
from textsim_db.review.reviewed import Reviewed
from textsim_db.review.site import Site
from textsim_db.review.survey import Survey

_PAGE_PATIENCE = 0.8
"""Seconds that the first page waits for pairs to show."""

Page = Callable[[Request, Pairs], Response]


class Review:
    """The pages of the reviewed documents."""

    def __init__(self, reviewed: Reviewed, read_only: bool = False) -> None:
        self._site = Site(reviewed, read_only)

    @property
    def survey(self) -> Survey:
        """Reads the pairs; the caller starts and stops it."""
        return self._site.survey

    def app(self) -> ASGIApp:
        """Return the application, which a Guard has to protect."""
        overview, pairs = OverviewPage(self._site), PairPages(self._site)
        clusters, judgements = ClusterPages(self._site), JudgementPages(self._site)
        pages: dict[str, Page] = {
            "/": overview.overview,
            "/effect": overview.effect,
            "/pairs": pairs.pairs,
            "/pair": pairs.pair,
            "/clusters": clusters.clusters,
            "/cluster": clusters.cluster,
            "/inspection": clusters.inspection,
            "/precision": partial(precision_page, self._site),
            "/judgements": judgements.judgements,
        }
        return Starlette(
            routes=[
                *(Route(path, partial(self._page, page)) for path, page in pages.items()),
                Route("/progress", self._progress),
                Route("/help", self._help),
                Route("/judgements.csv", judgements.csv),
                Route("/judgements.jsonl", judgements.json_lines),
                Route("/judge", pairs.judge, methods=["POST"]),
                Route("/undo", pairs.undo, methods=["POST"]),
                Route("/import", judgements.read, methods=["POST"]),
                Mount("/static", StaticFiles(directory=FOLDER / "static")),
            ],
            exception_handlers={TextsimError: self._failed, HTTPException: self._refused},
        )

    def _page(self, page: Page, request: Request) -> Response:
        """Return a page, or until there is a pair to show how far the reading is."""
        survey = self._site.survey
        survey.wait_for_some(_PAGE_PATIENCE)
        if survey.error is not None:
            raise survey.error
        if survey.pairs is None:
            return self._site.render("reading.html")
        return page(request, survey.pairs)

    def _progress(self, request: Request) -> Response:
        """Return how far the reading is, for the script."""
        survey = self._site.survey
        return JSONResponse({"pairs": survey.count, "complete": survey.is_complete})

    def _help(self, request: Request) -> Response:
        """Return what the words mean, and what to do about large clusters."""
        commands = self._site.reviewed.template_commands()
        return self._site.render("help.html", commands=commands)

    def _failed(self, request: Request, error: Exception) -> Response:
        if lacks_right(error):
            return self._error(403, f"the database refuses this to your role: {error}")
        if isinstance(error, DocumentNotFound):
            return self._error(404, str(error))
        status = 503 if isinstance(error, DatabaseError) else 409
        return self._error(status if not isinstance(error, ValueError) else 400, str(error))

    def _refused(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return self._error(error.status_code, error.detail)

    def _error(self, status: int, message: str) -> Response:
        return self._site.render("error.html", status, message=shown(message))
