"""The pages in Chromium, as the operating system packages it."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

import textsim_db as ts
from tests.support.review import HOSTILE, serving

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")

pytestmark = [
    pytest.mark.more,
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER), reason="Chromium is not installed: apt install chromium-driver"
    ),
]

WORDS = " ".join(f"word{i}" for i in range(30))
BROWSER_SECONDS = 30


@pytest.fixture(params=[True, False], ids=["script", "no script"])
def browser(request: pytest.FixtureRequest) -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in ("--headless=new", "--disable-dev-shm-usage", "--window-size=1280,900"):
        options.add_argument(argument)
    if hasattr(os, "getuid") and os.getuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium refuses to start as root with it
    if not request.param:
        options.add_experimental_option(
            "prefs", {"profile.managed_default_content_settings.javascript": 2}
        )
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(str(DRIVER)))
    driver.set_page_load_timeout(BROWSER_SECONDS)
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture
def corpus(db: ts.Database) -> ts.Corpus:
    corpus = db.create_corpus("<b>news</b>", threshold=0.6, shingle="word:2")
    corpus.add_many({"a": WORDS, "b": f"{WORDS} today", "c": f"{WORDS} tomorrow"})
    return corpus


def enter(browser: webdriver.Chrome, address: str, heading: str = "Overview") -> str:
    """Open the address that the command printed, wait for the first page, and return the site."""
    browser.get(address)
    wait(browser, lambda: heading in title(browser))
    return address.partition("/?")[0]


def wait(browser: webdriver.Chrome, condition: object) -> None:
    assert callable(condition)
    WebDriverWait(browser, BROWSER_SECONDS, ignored_exceptions=[Exception]).until(
        lambda _: condition()
    )


def title(browser: webdriver.Chrome) -> str:
    return browser.find_element(By.TAG_NAME, "h1").text


def is_scripted(request: pytest.FixtureRequest) -> bool:
    return "no script" not in request.node.name


def test_a_person_judges_with_keys_or_buttons(
    browser: webdriver.Chrome,
    corpus: ts.Corpus,
    database_url: str,
    request: pytest.FixtureRequest,
) -> None:
    with serving(database_url, corpus.name) as address:
        site = enter(browser, address)
        assert "token" not in browser.current_url
        browser.get(f"{site}/pairs")
        browser.find_element(By.LINK_TEXT, "side by side").click()
        wait(browser, lambda: "Pair 1 of 3" in title(browser))

        def press(key: str) -> None:
            if is_scripted(request):
                browser.find_element(By.TAG_NAME, "body").send_keys(key)
            else:
                browser.find_element(By.CSS_SELECTOR, f'[data-key="{key}"]').click()

        for i, key in enumerate("sdu", 1):
            wait(browser, lambda i=i: f"Pair {i} of 3" in title(browser))
            press(key)
            wait(browser, lambda i=i: len(list(corpus.judgements())) == i)
        verdicts = sorted(judgement.verdict for judgement in corpus.judgements())
        assert verdicts == ["different", "same", "unsure"]
        wait(browser, lambda: "No pair follows" in browser.page_source)
        press("z")
        wait(browser, lambda: len(list(corpus.judgements())) == 2)
        wait(browser, lambda: "Pair 3 of 3" in title(browser))
        press("p")
        wait(browser, lambda: "Pair 2 of 3" in title(browser))
        # Letters that somebody types into the note are no verdict.
        note = browser.find_element(By.NAME, "note")
        note.send_keys("sud")
        time.sleep(0.3)
        assert len(list(corpus.judgements())) == 2
        assert complaints(browser) == []


def test_the_handle_shows_what_a_threshold_means(
    browser: webdriver.Chrome,
    corpus: ts.Corpus,
    database_url: str,
    request: pytest.FixtureRequest,
) -> None:
    with serving(database_url, corpus.name) as address:
        enter(browser, address)
        assert "3 pairs" in browser.find_element(By.ID, "effect").text
        browser.find_element(By.ID, "threshold").send_keys(Keys.END)
        if not is_scripted(request):
            browser.find_element(By.CSS_SELECTOR, ".handle button").click()
        wait(browser, lambda: "0 pairs" in browser.find_element(By.ID, "effect").text)


def test_no_script_of_a_text_runs_and_no_text_leaves_its_place(
    browser: webdriver.Chrome, db: ts.Database, database_url: str
) -> None:
    corpus = db.create_corpus("hostile", threshold=0.3)
    corpus.add_many({key: f"{key} {WORDS}" for key in HOSTILE} | {"big": f"{WORDS} {'x' * 10**7}"})
    corpus.judge(HOSTILE[0], HOSTILE[1], "same", note=HOSTILE[-2])
    with serving(database_url, "hostile") as address:
        site = enter(browser, address)
        for path in ("/", "/pairs?state=any", "/clusters", "/precision", "/cluster?key=big"):
            browser.get(site + path)
            check_page(browser)
            for link in [
                str(link.get_attribute("href"))
                for link in browser.find_elements(By.CSS_SELECTOR, "td a[href]")
            ][:30]:
                assert link.startswith(f"{site}/")
                browser.get(link)
                check_page(browser)
        assert complaints(browser) == []


def complaints(browser: webdriver.Chrome) -> list[str]:
    """Return what the console says, such as violations of the content security policy."""
    entries = browser.get_log("browser")  # type: ignore[no-untyped-call]
    messages = [str(entry["message"]) for entry in entries]
    return [message for message in messages if "favicon" not in message]


def check_page(browser: webdriver.Chrome) -> None:
    # Reading an element fails if an alert is open.
    assert browser.find_element(By.TAG_NAME, "main").is_displayed()
    page = browser.find_element(By.TAG_NAME, "html")
    width, shown = (int(str(page.get_property(name))) for name in ("scrollWidth", "clientWidth"))
    assert width <= shown, browser.current_url


def test_a_page_of_another_site_cannot_judge(
    browser: webdriver.Chrome, corpus: ts.Corpus, database_url: str
) -> None:
    with serving(database_url, corpus.name) as address:
        site = enter(browser, address)
        page = (
            f'<form method="post" action="{site}/judge?a=a&amp;b=b"><input name="seen" value="">'
            '<button name="verdict" value="same">win</button></form>'
        )

        class Evil(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(page.encode())

            def log_message(self, *_: object) -> None: ...

        with ThreadingHTTPServer(("127.0.0.1", 0), Evil) as evil:
            threading.Thread(target=evil.serve_forever, daemon=True).start()
            # Another port is the same site for cookies, so only the Origin tells the two apart.
            for host in ("127.0.0.1", "localhost"):
                browser.get(f"http://{host}:{evil.server_address[1]}/")
                browser.find_element(By.TAG_NAME, "button").click()
                wait(browser, lambda: "another site" in browser.page_source)
            evil.shutdown()
    assert list(corpus.judgements()) == []
