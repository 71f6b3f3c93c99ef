"""The pages in Chromium, as the operating system packages it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from selenium import webdriver
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.expected_conditions import staleness_of
from selenium.webdriver.support.ui import WebDriverWait

import textsim_db as ts
from tests.support.browsers import CHROMIUM, DRIVER, PAGE_SECONDS, chromium, prefer
from tests.support.review import serving

pytestmark = [
    pytest.mark.more,
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER), reason="Chromium is not installed: apt install chromium-driver"
    ),
]

WORDS = " ".join(f"word{i}" for i in range(30))


@pytest.fixture(scope="module", params=[True, False], ids=["script", "no script"])
def started(request: pytest.FixtureRequest) -> Iterator[webdriver.Chrome]:
    with chromium(scripts=request.param) as driver:
        yield driver


with_scripts = pytest.mark.parametrize("started", [True], indirect=True, ids=["script"])


@pytest.fixture
def browser(started: webdriver.Chrome) -> webdriver.Chrome:
    """A browser that tests use one after another, without what the test before it has set."""
    started.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    prefer(started, "")
    started.get("about:blank")
    complaints(started)
    return started


@pytest.fixture
def corpus(db: ts.Database) -> ts.Corpus:
    corpus = db.create_corpus("<b>news</b>", threshold=0.6, shingle="word:2")
    corpus.add_many({"a": WORDS, "b": f"{WORDS} today", "c": f"{WORDS} tomorrow"})
    return corpus


def enter(browser: webdriver.Chrome, address: str, heading: str = "Overview") -> str:
    """Open the address that the command printed, wait for the first page, and return the site."""
    browser.get(address)
    wait(browser, lambda: heading in title(browser))
    return address.rstrip("/")


def wait(browser: webdriver.Chrome, condition: object) -> None:
    assert callable(condition)
    waiting = WebDriverWait(browser, PAGE_SECONDS, ignored_exceptions=[Exception])
    waiting.until(lambda _: condition())


def title(browser: webdriver.Chrome) -> str:
    return browser.find_element(By.TAG_NAME, "h1").text


def is_scripted(request: pytest.FixtureRequest) -> bool:
    return "no script" not in request.node.name


def test_a_person_judges_with_keys_or_buttons(
    browser: webdriver.Chrome, corpus: ts.Corpus, database_url: str, request: pytest.FixtureRequest
) -> None:
    with serving(database_url, corpus.name) as address:
        site = enter(browser, address)
        assert browser.get_cookies() == []
        browser.get(f"{site}/pairs")
        browser.find_element(By.CSS_SELECTOR, "td a").click()
        wait(browser, lambda: "Pair 1 of 3" in title(browser))
        undo = browser.find_element(By.CSS_SELECTOR, '[data-key="z"]')
        assert (undo.is_enabled(), undo.text) == (False, "Nothing to undo z")

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
    browser: webdriver.Chrome, corpus: ts.Corpus, database_url: str, request: pytest.FixtureRequest
) -> None:
    with serving(database_url, corpus.name) as address:
        enter(browser, address)
        assert browser.find_element(By.ID, "pairs").text == "3"
        browser.find_element(By.ID, "threshold").send_keys(Keys.END)
        if not is_scripted(request):
            browser.find_element(By.CSS_SELECTOR, ".handle button").click()
        wait(browser, lambda: browser.find_element(By.ID, "pairs").text == "0")
        wait(browser, lambda: "1.00 or above" in browser.find_element(By.ID, "effect").text)
        assert browser.find_element(By.ID, "at").text == "1.00"
        browser.find_element(By.ID, "to-pairs").click()
        wait(browser, lambda: title(browser) == "Pairs")
        assert browser.find_element(By.NAME, "around").get_attribute("value") == "1.0"


@with_scripts
def test_the_handle_marks_its_threshold(
    browser: webdriver.Chrome, corpus: ts.Corpus, database_url: str
) -> None:
    corpus.add_many({"d": f"{WORDS} today", "e": "word1 word2 word3", "f": "word1 word2 word4"})
    with serving(database_url, corpus.name) as address:
        enter(browser, address)
        handle = browser.find_element(By.ID, "threshold")
        marks = {"In use": 0.6} | {f"{tenth / 10:.1f}": tenth / 10 for tenth in range(6, 11)}
        lines = browser.find_elements(By.CSS_SELECTOR, "line.mark, line.tick")
        assert len(lines) == len(marks)
        half = handle.size["width"] / 2
        for line, at in zip(lines, marks.values(), strict=True):
            # A click moves the middle of the handle to the pointer.
            ActionChains(browser).move_to_element_with_offset(
                handle, round(line.rect["x"] - handle.rect["x"] - half), 0
            ).click().perform()
            assert float(str(handle.get_property("value"))) == at
            bar = browser.find_element(By.CSS_SELECTOR, ".bar:not(.below)")
            assert abs(bar.rect["x"] - line.rect["x"]) < 1


def test_a_cluster_is_inspected_cut_and_joined(
    browser: webdriver.Chrome, corpus: ts.Corpus, database_url: str
) -> None:
    with serving(database_url, corpus.name) as address:
        site = enter(browser, address)
        browser.get(f"{site}/clusters")
        browser.find_element(By.CSS_SELECTOR, "td a").click()
        wait(browser, lambda: title(browser) == "Cluster of 3 documents")
        browser.find_element(By.ID, "inspect").click()
        wait(browser, lambda: browser.find_elements(By.ID, "inspection"))
        assert "No template" in browser.find_element(By.ID, "inspection").text
        for label, place, count in (("Different", 0, 3), ("Different", 0, 2), ("Same", -1, 3)):
            buttons = browser.find_elements(By.CSS_SELECTOR, f"button[aria-label^={label}]")
            button = buttons[place]
            button.click()
            # While one page follows another, the driver has other errors than that of a lost button.
            wait(browser, lambda button=button: staleness_of(button)(browser))
            wait(browser, lambda count=count: title(browser) == f"Cluster of {count} documents")
        assert complaints(browser) == []


# The relative luminance and the contrast of WCAG 2.2.
CONTRASTS = """
const part = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const channels = (color) => color.match(/[0-9.]+/g).map(Number);
const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
const behind = (e) => {
  for (; e; e = e.parentElement) {
    const color = channels(getComputedStyle(e).backgroundColor);
    if (color.length < 4 || color[3] > 0) return color;
  }
  return [255, 255, 255];
};
return [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() &&
  [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())).map((e) => {
  const [a, b] = [light(channels(getComputedStyle(e).color)), light(behind(e))].sort();
  return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.outerHTML.slice(0, 100)];
});
"""


@with_scripts
@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_pages_have_contrast_names_and_a_heading(
    browser: webdriver.Chrome, corpus: ts.Corpus, database_url: str, is_dark: bool
) -> None:
    for i in range(12):
        corpus.add(f"k{i}", f"{WORDS} {i}")
    for i in range(11):
        corpus.judge(f"k{i}", f"k{i + 1}", ("same", "different", "unsure")[i % 3], note="why")
    with serving(database_url, corpus.name) as address:
        prefer(browser, "dark" if is_dark else "light")
        site = enter(browser, address)
        for path in (
            *("/", "/pairs?state=any", "/pair?a=k0&b=k1", "/clusters", "/cluster?key=k3&inspect=1"),
            *("/precision", "/judgements", "/help", "/none"),
        ):
            browser.get(site + path)
            for contrast, element in browser.execute_script(CONTRASTS):
                assert contrast >= 4.5, (path, element)
            if is_dark:  # headings and names are those of the light pages
                continue
            assert len(browser.find_elements(By.TAG_NAME, "h1")) == 1
            controls = "input:not([type=hidden]), select, textarea, button, a"
            for control in browser.find_elements(By.CSS_SELECTOR, controls):
                is_named = bool(control.accessible_name) or not control.is_displayed()
                assert is_named, (path, control.get_attribute("outerHTML"))


@with_scripts
def test_pages_fit_a_phone(browser: webdriver.Chrome, corpus: ts.Corpus, database_url: str) -> None:
    for i in range(12):
        corpus.add(f"key-of-24-characters-{i:03}", f"{WORDS} {i}")
        corpus.judge("a", f"key-of-24-characters-{i:03}", "same" if i % 2 else "different")
    with serving(database_url, corpus.name) as address:
        size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        site = enter(browser, address)
        for path in (
            *("/", "/pairs?state=any", "/pair?a=a&b=b", "/clusters", "/cluster?key=a&inspect=1"),
            *("/precision", "/judgements", "/help", "/none"),
        ):
            browser.get(site + path)
            check_page(browser)
            for key in browser.find_elements(By.CSS_SELECTOR, "bdi.key"):
                lines = browser.execute_script("return arguments[0].getClientRects().length", key)
                assert lines == 1, (path, key.text)


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
