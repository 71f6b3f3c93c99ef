"""The command textsim review, as a process of its own."""

from __future__ import annotations

import re
import socket
import time
import urllib.error
import urllib.request

import pytest

import textsim_db as ts
from tests.support.commands import NEWS, Textsim
from tests.support.review import serving


@pytest.fixture
def news(db: ts.Database) -> ts.Corpus:
    corpus = db.create_corpus("news", threshold=0.6)
    corpus.add_many(NEWS)
    return corpus


@pytest.mark.more
def test_it_prints_an_address_serves_it_and_ends_with_an_interrupt(
    news: ts.Corpus, database_url: str
) -> None:
    with serving(database_url, "news") as address:
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=[\w-]{43}", address)
        assert found
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(address, timeout=20) as page:
            assert b"To the review" in page.read()
        deadline = time.monotonic() + 60
        while True:
            with opener.open(f"http://127.0.0.1:{found[1]}/pairs", timeout=20) as page:
                if b"<table" in (body := page.read()):
                    break
            assert time.monotonic() < deadline, body
        assert body.count(b'href="/pair?') == 3
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(f"http://127.0.0.1:{found[1]}/pairs", timeout=20)


def test_a_port_in_use_is_named(news: ts.Corpus, textsim: Textsim) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = textsim("review", "news", "--no-browser", "--port", port, status=2)
    assert "in use" in refused.stderr
    assert port in refused.stderr
    assert "out of range" in textsim("review", "news", "--port", "65536", status=2).stderr
    assert "does not exist" in textsim("review", "new", "--no-browser", status=2).stderr
