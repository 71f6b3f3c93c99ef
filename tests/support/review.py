"""The review in a browser, as a process, and keys and texts that must not act on its pages."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape

from tests.support.commands import process
from tests.support.html import Html
from tests.support.waiting import PATIENCE_SECONDS

HOSTILE = [
    *("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "'-alert(1)-'"),
    *("{{ 7 * 7 }}{% raw %}", "\u202egnp.exe\u202d", "\u2066isolate", "a\r\nb\tc", "&amp;&lt;"),
    *("שלום", "javascript:alert(1)", "/../..//evil.example/?a=b&c#d"),
    *("</textarea></title></style><svg onload=alert(1)>", ""),
]


@contextmanager
def serving(url: str, *args: str) -> Iterator[str]:
    """Run the command, yield the address that it prints, and interrupt it; it has to end cleanly."""
    started = process("review", *args, "--no-browser", url=url)
    try:
        assert started.stdout is not None
        yield started.stdout.readline().strip()
        started.send_signal(signal.SIGINT)
        out, messages = started.communicate(timeout=PATIENCE_SECONDS)
        assert (started.returncode, out) == (0, ""), messages
        assert messages.endswith("ended\n")
        assert "Traceback" not in messages
    finally:
        started.kill()
        started.communicate()


def check_elements(page: str) -> None:
    """Assert that the texts of a page have added no element, script or foreign address."""
    read = Html(page)
    assert {"img", "iframe", "object", "style", "b"}.isdisjoint(read.tags)
    for element in read.elements:
        assert not [n for n in element.attributes if n.startswith("on") or n == "style"], element
        if element.tag == "script":
            assert element.attributes == {"src": "static/review.js", "defer": ""}
    assert all(
        re.match(r"(\./|static/\w+|\w+)?(\.\w+)?([?#]|$)", address)
        for address in read.values("href", "src", "action")
    )


def words_of(page: str) -> str:
    return " ".join(unescape(re.sub("<[^>]+>", "", page)).split())


def seen_of(page: str) -> str:
    """Return what the form of a pair says that its user has seen."""
    return unescape(re.findall(r'name="seen" value="([^"]*)"', page)[0])
