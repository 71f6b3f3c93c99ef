"""Serves the pages on the loopback address, guarded by a token, names and headers."""

from __future__ import annotations

import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from html import escape
from secrets import compare_digest
from typing import Literal

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from textsim_db.errors import DatabaseError, DocumentNotFound, TextsimError, lacks_right
from textsim_db.results.shown_values import shown
from textsim_db.review.cluster_pages import ClusterPages, OverviewPage, precision_page
from textsim_db.review.judgement_pages import JudgementPages
from textsim_db.review.pair_arrays import Pairs
from textsim_db.review.pair_pages import PairPages
from textsim_db.review.rendering import FOLDER
from textsim_db.review.site import Site
from textsim_db.review.survey import Reviewed, Survey

_READING = ("GET", "HEAD")
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    # With no-referrer, browsers send the Origin "null" with forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class AccessCheck:
    """Passes requests on to an application if their path begins with the token.

    A page of another site can make a browser send requests here. Then the Host is another name (DNS
    rebinding), or the path lacks the token, or the Origin of a form is another one. No cookie holds the
    token: a browser sends a cookie to every port of a host, so to other servers of this machine.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.lower().encode(), text.encode()) for name, text in _HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *own]}
            await send(message)

        app = self._answer(Request(scope)) or self._app
        await app({**scope, "root_path": f"/{self._token}"}, receive, send_with_headers)

    def _answer(self, request: Request) -> Response | None:
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return _refusal(421, "this server has another name")
        origins = request.headers.getlist("origin")
        if request.method not in _READING and origins != [f"http://{hosts[0]}"]:
            return _refusal(403, "this form is on a page of another site")
        if not self._has_token(request.scope["path"]):
            return _refusal(403, "open the address that textsim review printed, with its token")
        return None

    def _has_token(self, path: str) -> bool:
        start, slash, _ = path.removeprefix("/").partition("/")
        return bool(slash) and compare_digest(start.encode(errors="replace"), self._token.encode())


def _refusal(status: int, reason: str) -> Response:
    return HTMLResponse(
        f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>refused</title>'
        f"<p>{escape(reason)}</p></html>",
        status,
    )


HOST = "127.0.0.1"


def serve(
    app: ASGIApp, port: int, browser: bool, show: Callable[[str], None], first: str = ""
) -> None:
    """Serve an application until an interrupt; show: receives the address of the first page."""
    token = secrets.token_urlsafe(32)

    def make_app(port: int) -> ASGIApp:
        address = f"http://{HOST}:{port}/{token}/{first}"
        show(address)
        if browser:
            # A browser in the terminal would return only when it ends.
            threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
        return AccessCheck(app, token, port)

    serve_app(make_app, port)


def serve_app(
    make_app: Callable[[int], ASGIApp], port: int, lifespan: Literal["on", "off"] = "off"
) -> None:
    """Serve on the loopback address until an interrupt; make_app: receives the port."""
    with socket.create_server((HOST, port)) as listening:
        # asyncio sets it only for sockets that name the protocol. Each answer would wait 40 ms.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        config = uvicorn.Config(
            make_app(listening.getsockname()[1]),
            lifespan=lifespan,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            timeout_graceful_shutdown=1,
        )
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])


_PAGE_PATIENCE = 0.8
"""Seconds that the first page waits for pairs to show."""

Page = Callable[[Request, Pairs], Response]


class Review:
    def __init__(self, reviewed: Reviewed, read_only: bool = False) -> None:
        self._site = Site(reviewed, read_only)

    @property
    def survey(self) -> Survey:
        """Reads the pairs; the caller starts and stops it."""
        return self._site.survey

    def app(self) -> ASGIApp:
        """Return the application, which an AccessCheck has to protect."""
        overview, pairs = OverviewPage(self._site), PairPages(self._site)
        clusters, judgements = ClusterPages(self._site), JudgementPages(self._site)
        pages: dict[str, Page] = {
            "/": overview.overview,
            "/effect": overview.effect,
            "/pairs": pairs.pairs,
            "/pair": pairs.pair,
            "/clusters": clusters.clusters,
            "/cluster": clusters.cluster,
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
                Route("/import", judgements.take_in, methods=["POST"]),
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
        survey = self._site.survey
        return JSONResponse({"pairs": survey.count, "complete": survey.is_complete})

    def _help(self, request: Request) -> Response:
        """Return what the words mean, and what to do about large clusters."""
        return self._site.render("help.html")

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
