"""The pages of textsim review: how long the first page takes, and the pages after it.

python -m benchmarks.review [--documents 1000000] [--words 100] [--record]

The first page is asked for when the command has printed its address, while all pairs are being read.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from html import unescape
from urllib.parse import quote, urlencode

from benchmarks.generate import documents
from benchmarks.harness import Figures, fresh_database, milliseconds, options, publish
from textsim_db.database import URL_VARIABLE

ROUNDS = 7
PAGES = {
    "overview": "/",
    "what a threshold means": "/effect?threshold=0.9",
    "pairs, most useful first": "/pairs",
    "pairs, near 0.9": "/pairs?around=0.9",
    "pairs, a fair sample": "/pairs?order=spread",
    "pairs of a range of similarity, judged": "/pairs?low=0.85&high=0.9&state=judged",
    "pairs of a cluster": "/pairs?cluster={key}&state=any",
    "pairs with a word": "/pairs?text={word}",
    "a pair": "/pair?{pair}",
    "clusters": "/clusters",
    "clusters at another threshold": "/clusters?threshold=0.9",
    "a cluster": "/cluster?key={key}",
    "precision": "/precision",
    "judgements": "/judgements",
}


class Client:
    """A browser that was given the address."""

    def __init__(self, address: str) -> None:
        self.site = address.rstrip("/")

    def get(self, path: str) -> str:
        """Return a page."""
        with urllib.request.urlopen(self.site + path) as page:
            return str(page.read().decode())

    def judge(self, path: str, seen: str, verdict: str) -> str:
        """Judge a pair and return the page of the next pair."""
        data = urlencode({"verdict": verdict, "seen": seen}).encode()
        origin = self.site.rpartition("/")[0]
        request = urllib.request.Request(self.site + path, data, {"Origin": origin})
        with urllib.request.urlopen(request) as page:
            return str(page.read().decode())


def measure(client: Client) -> Figures:
    """Return the milliseconds of the first page, of each page, and of a verdict."""
    figures: Figures = {}
    start = time.monotonic()
    first = client.get("/")
    figures["first_ms"] = 1000 * (time.monotonic() - start)
    assert "What a threshold means" in first, first
    figures["first_is_estimate"] = "Estimated from" in first
    while not json.loads(client.get("/progress"))["complete"]:
        time.sleep(0.5)
    figures["read_s"] = time.monotonic() - start
    figures["pairs"] = json.loads(client.get("/progress"))["pairs"]
    # Warnings are looked for after the pairs were read.
    time.sleep(10)
    figures["pages"] = {}
    for name in (*PAGES, "a verdict"):
        times = [_ask(client, name) for _ in range(ROUNDS)]
        figures["pages"][name] = {"first_ms": times[0], "median_ms": sorted(times)[ROUNDS // 2],
                                  "worst_ms": max(times)}  # fmt: skip
        print(name, [round(value) for value in times], flush=True)
    medians = {name: page["median_ms"] for name, page in figures["pages"].items()}
    figures["pair_ms"], figures["slowest_ms"] = medians["a pair"], max(medians.values())
    return figures


def _ask(client: Client, name: str) -> float:
    """Return the milliseconds of a page, or of a verdict, which leads to the page of the next pair."""
    pair = unescape(re.findall(r'href="/pair\?([^"]*)"', client.get("/pairs"))[0])
    if name == "a verdict":
        page = client.get(f"/pair?{pair}")
        action = unescape(re.findall(r'action="(/judge[^"]*)"', page)[0])
        seen = re.findall(r'name="seen" value="([^"]*)"', page)[0]
        return milliseconds(client.judge, action, seen, "same")
    key = re.findall(r'class="key">([^<]*)<', client.get("/clusters"))[0]
    return milliseconds(client.get, PAGES[name].format(pair=pair, key=quote(key), word="zzz"))


def main() -> None:
    """Measure the pages of a corpus, and print their table."""
    given = options(__doc__, documents=1_000_000, words=100).parse_args()
    with fresh_database() as bench:
        corpus = bench.db.create_corpus("review")
        corpus.add_many(documents(given.documents, given.words, planted=0.3))
        bench.connection.execute("VACUUM ANALYZE")
        start = time.monotonic()
        command = [sys.executable, "-m", "textsim_db.cli", "review", "review", "--no-browser"]
        environment = {**os.environ, URL_VARIABLE: bench.db.engine.url.render_as_string(False)}
        served = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        try:
            assert served.stdout is not None
            address = served.stdout.readline().strip()
            figures: Figures = {"documents": given.documents, "words": given.words,
                                "start_s": time.monotonic() - start}  # fmt: skip
            figures |= measure(Client(address))
        finally:
            served.send_signal(signal.SIGINT)
            served.wait(20)
    rows = [["page", "first, ms", "median, ms", "slowest, ms"]]
    rows += [["first page, while pairs are read", f"{figures['first_ms']:.0f}", "", ""]]
    for name, values in figures["pages"].items():
        rows.append([name, *(f"{values[each]:.0f}" for each in values)])
    publish(given.record, "review", figures, {"review": rows})


if __name__ == "__main__":
    main()
