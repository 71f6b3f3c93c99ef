"""Texts with HTML: dedupe counts them, and the recipes of the pages decode them alike."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from tests.docs.page import ROOT, read_snippets
from tests.support.commands import Textsim
from tests.support.connections import Connection
from tests.support.records import as_jsonl

WITH_HTML = [
    *("Baker &amp; Sons&#39; guide &ndash; 5 &lt; 7", "a guide&#x2019;s walk"),
    *("a guide<br>to walk", "<P class='x'>a guide</P>"),
]
PLAIN = ["Baker & Sons' guide – 5 < 7", "R&D, if x < y and y > z", "list<int> & map<b2>", "&#;"]


@pytest.mark.parametrize("text", WITH_HTML + PLAIN)
def test_dedupe_says_which_texts_have_html(textsim: Textsim, text: str) -> None:
    Path("in.jsonl").write_bytes(as_jsonl([{"id": 1, "text": "nothing"}, {"id": 2, "text": text}]))
    told = textsim("dedupe", "in.jsonl", "-o", "out.jsonl").stderr
    assert ("1 text has entities or tags of HTML, such as " in told) == (text in WITH_HTML)
    assert ("of record 2: their names" in told) == (text in WITH_HTML)


def test_sql_and_python_decode_alike(connection: Connection) -> None:
    (code,) = (
        snippet.code
        for snippet in read_snippets(ROOT / "docs/how-to/keep-a-table-indexed.md")
        if "CREATE FUNCTION without_html" in snippet.code
    )
    connection.execute(code.partition("\nSELECT without_html")[0].encode())
    numbers = (f"&#{n}; &#x{n:x}; &#X{n:X};" for n in (39, 160, 8217, 128512, 300_000))
    others = ("", "&", "&amp;amp;", "amp;", "&amp", "a&b;c", "&#39;&#39;")
    for text in [*WITH_HTML, *PLAIN, *numbers, *others]:
        expected = html.unescape(re.sub("<[^>]*>", " ", text))
        if text == "&amp":  # a browser decodes it without the semicolon
            expected = text
        (decoded,) = connection.execute("SELECT without_html(%s)", [text]).fetchone() or [None]
        assert decoded.replace("\u00a0", " ") == expected.replace("\u00a0", " "), text
    for text in ("&#0;", "&#55296;", "&#9999999;", "&#xffffff;"):
        assert connection.execute("SELECT without_html(%s)", [text]).fetchone() == (text,)
