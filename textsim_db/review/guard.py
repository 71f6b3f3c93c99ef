"""Guards the pages: the token, the names of the server, and the headers of every response."""

from __future__ import annotations

from html import escape
from secrets import compare_digest

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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


class Guard:
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
        """Answer a request, or pass it on."""
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
        """Return the response to a request that is not passed on."""
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
