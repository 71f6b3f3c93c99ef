"""Chromium as the operating system packages it, driven by Selenium; the playground of a built site."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
PAGE_SECONDS = 60


@contextmanager
def chromium(scripts: bool = True, width: int = 1280) -> Iterator[webdriver.Chrome]:
    """Lend a browser; scripts: whether pages may run their scripts."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    quiet = ("--headless=new", "--disable-dev-shm-usage", "--hide-scrollbars")
    for argument in (*quiet, f"--window-size={width},900"):
        options.add_argument(argument)
    if hasattr(os, "getuid") and os.getuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium refuses to start as root with it
    if not scripts:
        forbidden = {"profile.managed_default_content_settings.javascript": 2}
        options.add_experimental_option("prefs", forbidden)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(str(DRIVER)))
    driver.set_page_load_timeout(PAGE_SECONDS)
    try:
        yield driver
    finally:
        driver.quit()


def prefer(driver: webdriver.Chrome, scheme: str) -> None:
    """Let the user of a browser prefer light or dark pages; an empty scheme is the browser's own."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


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
    WebDriverWait(browser, PAGE_SECONDS).until(
        lambda _: browser.find_elements(By.CSS_SELECTOR, "#status[data-ready]")
    )
