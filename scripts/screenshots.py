"""Write the screenshots of textsim review and of the playground into docs/images.

    make docs && python -m scripts.screenshots

The playground is that of the site. A review is taken in order, from the first look to the suggested
threshold: its pictures show one corpus, whose documents and judgements are made here. The program needs
Chromium and chromedriver.
"""

from __future__ import annotations

import base64
import random
import time
from collections.abc import Iterator
from pathlib import Path

from selenium import webdriver

import textsim_db as ts
from benchmarks.harness import fresh_database
from tests.support import review
from tests.support.browsers import chromium, open_playground, serving

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "images"
PAGES = {
    "overview": "/",
    "pairs": "/pairs",
    "pair": "/pair?a=story-003&b=story-003-corrected",
    "cluster": "/cluster?key=story-000&inspect=1",
    "precision": "/precision",
}
MOST_HEIGHT = 1_000
"""The height of a picture in pixels."""
WHO = ("The council", "The mayor", "The county court", "A committee of parents", "The museum")
DID = ("voted to rebuild", "opened", "asked for bids to repair", "published plans for", "closed")
WHAT = (
    "the stone bridge over the river",
    "a reading room in the former post office",
    "the roof of the swimming hall",
    "a cycle path to the northern villages",
    "the ferry across the bay",
)
MORE = (
    "The work will take about {} months and will cost less than expected.",
    "Neighbours of {} Mill Lane had asked for it for years, and some of them came to listen.",
    "A second meeting follows on {} July in the town hall.",
    "Schools nearby stay open, and {} buses take another way.",
    "Of the members, {} wanted a cheaper solution, but they found no majority.",
    "The Harbour Gazette has received {} letters about it since Monday.",
)


def stories(rng: random.Random) -> Iterator[tuple[str, str]]:
    """Yield news stories, most of them in several versions."""
    for number in range(60):
        first = f"{rng.choice(WHO)} {rng.choice(DID)} {rng.choice(WHAT)}, as report {number} says."
        more = [each.format(rng.randrange(2, 30)) for each in rng.sample(MORE, 5)]
        key, text = f"story-{number:03}", " ".join([first, *more])
        yield key, text
        yield (
            f"{key}-agency",
            text.replace("about ", "some ").replace("it for years", "this for long"),
        )
        if number % 3 == 0:
            yield f"{key}-corrected", text.replace("July", "August")
        if number % 4 == 0:
            yield f"{key}-short", " ".join([first, *more[:3], f"A picture is on page {number}."])


def judge(corpus: ts.Corpus, rng: random.Random) -> None:
    """Judge some pairs as a person would: versions of one story are the same."""
    pairs = list(corpus.pairs())
    for a, b, _ in rng.sample(pairs, 60):
        if {a, b} != {"story-001", "story-002"}:
            corpus.judge(a, b, "same" if a[:9] == b[:9] else "different")
    corpus.judge("story-001", "story-002", "unsure", note="the same plan, and two bridges")


def shoot(browser: webdriver.Chrome, name: str) -> None:
    """Write the page, or the begin of a long page, as a picture."""
    width, height = browser.execute_script(
        "const page = document.documentElement; return [page.clientWidth, page.scrollHeight]"
    )
    clip = {"x": 0, "y": 0, "width": width, "height": min(height, MOST_HEIGHT)}
    write(browser, f"review-{name}", clip)


def shoot_playground() -> None:
    """Write the playground from the typed texts on."""
    with serving(ROOT / "site") as address, chromium() as browser:
        open_playground(browser, address)
        x, y, width = browser.execute_script("""
            const { x, y, width } = document.getElementById("texts").getBoundingClientRect();
            return [x, y + scrollY, width]""")
        clip = {"x": x - 10, "y": y - 10, "width": width + 20, "height": MOST_HEIGHT}
        write(browser, "playground", clip)


def write(browser: webdriver.Chrome, name: str, clip: dict[str, float]) -> None:
    """Write a part of a page as a picture."""
    options = {"format": "png", "captureBeyondViewport": True, "clip": {**clip, "scale": 1}}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", options)
    (FOLDER / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))


def shoot_review() -> None:
    """Write the pages of a review."""
    rng = random.Random(1)
    with fresh_database() as bench:
        corpus = bench.db.create_corpus("news", threshold=0.4, recall=1.0)
        run = bench.connection.execute
        run("CREATE TABLE article (id text PRIMARY KEY, body text)")
        for row in stories(rng):
            run("INSERT INTO article VALUES (%s, %s)", row)
        corpus.attach("article", "id", "body")
        judge(corpus, rng)
        url = bench.db.engine.url.render_as_string(False)
        with review.serving(url, "news") as address:
            site = address.rstrip("/")
            with chromium() as browser:
                browser.get(address)
                browser.get(f"{site}/")
                while "being read" in browser.page_source:
                    time.sleep(0.3)
                    browser.get(f"{site}/")
                for name, page in PAGES.items():
                    browser.get(site + page)
                    shoot(browser, name)


def main() -> None:
    """Take all pictures."""
    shoot_playground()
    shoot_review()


if __name__ == "__main__":
    main()
