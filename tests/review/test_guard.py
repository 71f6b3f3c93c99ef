"""The token, the host and the origin of requests."""

from __future__ import annotations

import pytest

import textsim_db as ts
from tests.review.conftest import HOME, PORT, TOKEN, Open

PATHS = ["/", "/pairs", "/pair?a=a&b=b", "/clusters", "/precision", "/static/review.css", "/effect"]


def test_the_token_opens_the_pages_and_nothing_else_does(
    corpus: ts.Corpus, open_review: Open
) -> None:
    client = open_review(corpus, enter=False)
    for path in PATHS:
        assert client.get(path).status_code == 403
    for wrong in ("", "x", TOKEN[:-1], TOKEN + "x", "é", "%ff"):
        assert client.get(f"/?token={wrong}").status_code == 403
    assert not client.cookies
    entrance = client.get(f"/?token={TOKEN}")
    (cookie,) = entrance.headers.get_list("set-cookie")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert client.get("/").status_code == 200
    assert client.get("/static/review.js").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", "", "é"]
)
def test_another_host_is_refused(corpus: ts.Corpus, open_review: Open, host: str) -> None:
    client = open_review(corpus)
    headers = [(b"host", host.encode())]
    assert client.get("/", headers=headers).status_code == 421
    assert client.get(f"/?token={TOKEN}", headers=headers).status_code == 421


@pytest.mark.parametrize(
    "origin", ["null", "http://evil.example", HOME + "0", "https" + HOME[4:], f"{HOME} {HOME}", ""]
)
def test_a_form_of_another_site_is_refused(
    corpus: ts.Corpus, open_review: Open, origin: str
) -> None:
    client = open_review(corpus)
    sent = client.post(
        "/judge?a=a&b=b", data={"verdict": "same", "seen": ""}, headers={"origin": origin}
    )
    assert sent.status_code == 403
    assert list(corpus.judgements()) == []


def test_a_form_without_origin_or_cookie_is_refused(corpus: ts.Corpus, open_review: Open) -> None:
    client = open_review(corpus)
    del client.headers["origin"]
    form = {"verdict": "same", "seen": ""}
    assert client.post("/judge?a=a&b=b", data=form).status_code == 403
    assert client.post(f"/judge?a=a&b=b&token={TOKEN}", data=form).status_code == 403
    client.cookies.clear()
    client.headers["origin"] = HOME
    assert client.post(f"/judge?a=a&b=b&token={TOKEN}", data=form).status_code == 403
    assert list(corpus.judgements()) == []


def test_every_response_forbids_foreign_content(corpus: ts.Corpus, open_review: Open) -> None:
    client = open_review(corpus)
    responses = [client.get(path) for path in (*PATHS, "/none", "/judge")]
    responses += [client.get("/", headers={"host": "x"}), client.post("/judge?a=a")]
    for response in responses:
        policy = response.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["cache-control"] == "no-store"
