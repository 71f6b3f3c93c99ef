"""Requests without the token, the host or the origin do nothing, and no request runs a script."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from urllib.parse import quote, urlencode

import pytest

import textsim_db as ts
from tests.review.conftest import HOME, PORT, TOKEN, Open
from tests.support.review import HOSTILE, check_elements

PATHS = [
    *("/", "/effect", "/pairs", "/pair", "/clusters", "/cluster", "/precision"),
    *("/help", "/judgements", "/judgements.csv", "/judgements.jsonl", "/progress", "/judge"),
    *("/undo", "/import", "/static/review.css", "/static/..%2fpages.py", "//evil.example/"),
    *("/%00", "/pair/../judge"),
]
NAMES = [
    *("a", "b", "key", "threshold", "low", "high", "around", "text", "cluster", "scope"),
    *("language", "state", "order", "start", "blind", "inspect", "of_cluster", "token"),
    *("imported", "verdict"),
]
HOSTS = ["evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", "", "é"]
ORIGINS = ["null", "http://evil.example", HOME + "0", "https" + HOME[4:], f"{HOME} {HOME}", ""]
"""Origins of other sites."""


def test_requests_run_no_script(corpus: ts.Corpus, open_review: Open, rng: random.Random) -> None:
    words = " ".join(f"word{i}" for i in range(30))
    corpus.add_many({key: f"{key} {words} {key}" for key in HOSTILE})
    for _ in range(10):
        a, b = rng.sample(HOSTILE, 2)
        if {a, b} not in [{each.a, each.b} for each in corpus.judgements()]:
            corpus.judge(a, b, rng.choice(["same", "different"]), note=rng.choice(HOSTILE))
    before = list(corpus.judgements())
    client = open_review(corpus)
    for _ in range(100):
        path = address(rng)
        response = client.request(rng.choice(["GET", "GET", "HEAD", "PUT", "DELETE"]), path)
        assert response.status_code in (200, 400, 404, 405, 409), (path, response.text)
        check(response.headers, response.text)
    foreign = {"origin": rng.choice(ORIGINS)}
    for _ in range(50):
        response = client.post(address(rng), content=body(rng), headers=foreign)
        assert response.status_code == 403
    assert list(corpus.judgements()) == before


@pytest.mark.parametrize("path", ["/judge", "/undo", "/import"])
def test_nothing_is_written_without_rights_whatever_the_body_is(
    corpus: ts.Corpus, open_review: Open, rng: random.Random, path: str
) -> None:
    client = open_review(corpus, read_only=True)
    for _ in range(30):
        response = client.post(f"{path}?{query(rng)}", content=body(rng))
        assert response.status_code == 403, response.text
        check(response.headers, response.text)
    assert list(corpus.judgements()) == []


def address(rng: random.Random) -> str:
    return f"{rng.choice(PATHS)}?{query(rng)}"


def query(rng: random.Random) -> str:
    values: list[Callable[[], str]] = [
        lambda: rng.choice(HOSTILE),
        lambda: str(rng.uniform(-2, 2)),
        lambda: rng.choice(["nan", "1e999", "9" * 30, "judged", "any", "spread", "1", "-1"]),
        lambda: "".join(chr(rng.randrange(1, 0xD800)) for _ in range(rng.randrange(40))),
    ]
    names = rng.sample(NAMES, rng.randrange(6))
    chosen = [(name, rng.choice(values)()) for name in names if name != "token"]
    return urlencode(chosen) + rng.choice(["", "&&&=", "%", "&a=%ff%fe", "&text=" + quote("\x00")])


def body(rng: random.Random) -> bytes:
    forms = [
        *(b"", b"verdict=same&seen=", b"verdict=same&seen=&note=" + b"%3Cscript%3E" * 20),
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="j.csv"\r\n\r\na,b,verdict\r\n',
        rng.randbytes(200),
    ]
    return rng.choice(forms)


def check(headers: Mapping[str, str], page: str) -> None:
    """Check that a browser runs no script of a page but the one of the server."""
    policy = headers["content-security-policy"]
    assert "script-src 'self'" in policy
    if headers["content-type"].startswith("text/html"):
        check_elements(page)
    else:  # a browser shows no export as a page
        assert headers["x-content-type-options"] == "nosniff"


PAGES = ["/", "/pairs", "/pair?a=a&b=b", "/clusters", "/precision", "/static/review.css", "/effect"]


def test_the_token_alone_opens_the_pages(corpus: ts.Corpus, open_review: Open) -> None:
    client = open_review(corpus, enter=False)
    for path in PAGES:
        assert client.get(path).status_code == 403
    for wrong in ("", "x", TOKEN[:-1], TOKEN + "x", "é", "%ff", f"x/{TOKEN}"):
        assert client.get(f"/{wrong}/").status_code == 403
    assert client.get(f"/{TOKEN}").status_code == client.get(f"/?token={TOKEN}").status_code == 403
    # A browser would send a cookie to the other servers of this machine, too.
    for path in PAGES:
        shown = client.get(f"/{TOKEN}{path}")
        assert shown.status_code == (404 if path.startswith("/pair?") else 200)
        assert "set-cookie" not in shown.headers
        assert TOKEN not in shown.text


def test_other_hosts_and_other_sites_are_refused(corpus: ts.Corpus, open_review: Open) -> None:
    client = open_review(corpus)
    for host in HOSTS:
        assert client.get("/", headers=[(b"host", host.encode())]).status_code == 421, host
    form = {"verdict": "same", "seen": ""}
    for origin in ORIGINS:
        sent = client.post("/judge?a=a&b=b", data=form, headers={"origin": origin})
        assert sent.status_code == 403, origin
    assert client.post(f"{HOME}/judge?a=a&b=b&token={TOKEN}", data=form).status_code == 403
    del client.headers["origin"]
    assert client.post("/judge?a=a&b=b", data=form).status_code == 403
    assert list(corpus.judgements()) == []


def test_every_response_forbids_foreign_content(corpus: ts.Corpus, open_review: Open) -> None:
    client = open_review(corpus)
    responses = [client.get(path) for path in (*PAGES, "/none", "/judge")]
    responses += [client.get("/", headers={"host": "x"}), client.post("/judge?a=a")]
    for response in responses:
        policy = response.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["cache-control"] == "no-store"
