"""textsim mcp: tools by which a model searches a corpus, and remembers in it."""

from __future__ import annotations

import os
import secrets

from textsim_db.cli import options
from textsim_db.cli.messages import explain, print_message
from textsim_db.cli.opening import connect
from textsim_db.errors import ConfigurationError, CorpusNotFound, shown

TOKEN_VARIABLE = "TEXTSIM_MCP_TOKEN"  # noqa: S105 - the name of a variable
_SHORTEST_TOKEN = 16


def mcp(
    corpus: str,
    /,
    *,
    scope: str | None = None,
    write: bool = False,
    http: int | None = None,
    database_url: str | None = None,
) -> None:
    """Let a model search a corpus, and remember texts in it, by tools of the Model Context Protocol.

    The tools are check_before_write, search, passages, verify_quote, compare, doubtful and status; with
    --write also remember, judge and forget. They see one scope, which no argument of theirs changes.
    Over HTTP each request needs a token: that of TEXTSIM_MCP_TOKEN, or a new one, which is printed once.

    Args:
        scope: Search the documents of this scope only. A scoped corpus requires it.
        write: Offer also the tools remember, judge and forget.
        http: Serve over HTTP on this port of this machine; 0 is any free port. Default: over standard
            input and output.

    Examples:
    - `textsim mcp notes --scope anna --write`
    - `textsim mcp news --http 8080`

    """
    with options.needs_extra("mcp", "the tools need the package mcp"):
        from textsim_db.mcp.tool_server import ToolServer
        from textsim_db.mcp.tools import CorpusTools

    token = os.environ.get(TOKEN_VARIABLE, "")
    if http is not None and token and (len(token) < _SHORTEST_TOKEN or not token.isascii()):
        raise ConfigurationError(
            f"{TOKEN_VARIABLE} must have at least {_SHORTEST_TOKEN} characters of ASCII"
        )
    if scope is not None and not scope.strip():
        raise ConfigurationError(
            "--scope is empty; all who do so would share one memory: name a user"
        )
    with connect(database_url, is_brief=False) as db:
        try:
            opened = db.corpus(corpus)
        except CorpusNotFound as error:
            error.add_note(f"to create it, run: textsim corpus create {shown(corpus)}")
            raise
        server = ToolServer(CorpusTools(opened, scope), write, explain)
        if http is None:
            server.run_on_stdio()
            return
        is_new, token = not token, token or secrets.token_urlsafe(32)

        def show(address: str) -> None:
            print_message(f"serving on {address}; press Ctrl-C to end")
            if is_new:
                print_message(f"token: {token}")

        server.run_on_http(http, token, show)
