"""Guards the pages: the token, the names of the server, and the headers of every response."""

from __future__ import annotations

from html import escape
from secrets import compare_digest
from urllib.parse import parse_qs

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
# The cookie is strict: a browser sends it only with requests that begin on a page of ours. A redirect
# belongs to the page before it, so this page leads on instead.
_ENTRANCE = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>textsim review</title>
<meta http-equiv="refresh" content="0; url=/"><p><a href="/">To the review</a></p></html>"""


class Guard:
    """Passes requests on to an application if they come from a browser that was given the token.

    A page of another site can make a browser send requests here. Then the Host is another name (DNS
    rebinding), or the cookie is missing, or the Origin of a form is another one.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        # Browsers send cookies to every port of a host.
        self._cookie = f"textsim-review-{port}"

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
        await app(scope, receive, send_with_headers)

    def _answer(self, request: Request) -> Response | None:
        """Return the response to a request that is not passed on."""
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return _refusal(421, "this server has another name")
        if request.method not in _READING:
            if request.headers.getlist("origin") != [f"http://{hosts[0]}"]:
                return _refusal(403, "this form is on a page of another site")
        elif self._is_token(_token_of(request)):
            entrance = HTMLResponse(_ENTRANCE)
            entrance.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
            return entrance
        if not self._is_token(request.cookies.get(self._cookie, "")):
            return _refusal(403, "open the address that textsim review printed, with its token")
        return None

    def _is_token(self, text: str) -> bool:
        return compare_digest(text.encode(errors="replace"), self._token.encode())


def _token_of(request: Request) -> str:
    query: str = request.scope["query_string"].decode("latin-1")
    return parse_qs(query).get("token", [""])[0]


def _refusal(status: int, reason: str) -> Response:
    return HTMLResponse(
        f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>refused</title>'
        f"<p>{escape(reason)}</p></html>",
        status,
    )
