"""The playground of a built site, served to a browser on this machine."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

SECONDS = 60
"""How long PostgreSQL may take to start in a tab of a busy machine."""


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print no requests."""


@contextmanager
def serving(site: Path) -> Iterator[str]:
    """Serve a site, and yield the address of its playground."""
    handler = functools.partial(_Handler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/playground.html"
        server.shutdown()


def open_playground(browser: webdriver.Chrome, address: str) -> None:
    """Open the page, and wait until its PostgreSQL has answered."""
    browser.get(address)
    WebDriverWait(browser, SECONDS).until(
        lambda _: browser.find_elements(By.CSS_SELECTOR, "#status[data-ready]")
    )
