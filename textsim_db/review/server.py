"""Serves the pages on the loopback address until the user interrupts it."""

from __future__ import annotations

import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress

import uvicorn
from starlette.types import ASGIApp

from textsim_db.review.guard import Guard

HOST = "127.0.0.1"


def serve(app: ASGIApp, port: int, browser: bool, show: Callable[[str], None]) -> None:
    """Serve an application until an interrupt.

    port: 0 is any free port. browser: open the first page. show: receives the address of the first
    page when the server listens. Raises OSError if the port is in use.
    """
    with socket.create_server((HOST, port)) as listening:
        port = listening.getsockname()[1]
        token = secrets.token_urlsafe(32)
        address = f"http://{HOST}:{port}/{token}/"
        config = uvicorn.Config(
            Guard(app, token, port),
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            timeout_graceful_shutdown=1,
        )
        show(address)
        if browser:
            # A browser in the terminal would return only when it ends.
            threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])
