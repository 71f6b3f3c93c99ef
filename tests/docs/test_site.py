"""The documentation site: its build is strict, and a page of it loads nothing from a network."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.page import ROOT
from tests.support.html import Html

pytestmark = pytest.mark.more

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
REMOTE = re.compile(r"(https?:)?//")


def resources(site: Path) -> Iterator[str]:
    for page in site.rglob("*.html"):
        for tag, attributes in Html(page.read_text("utf-8")).elements:
            if address := attributes.get(LOADED.get(tag, "")):
                yield address
    for style in site.rglob("*.css"):
        yield from re.findall(r"url\([\"']?([^\"')]+)", style.read_text("utf-8"))


def test_no_page_loads_anything_from_a_network(site: Path) -> None:
    addresses = list(resources(site))
    assert len(addresses) > 20
    assert [address for address in addresses if REMOTE.match(address)] == []
    for script in site.glob("playground/**/*.js"):
        assert not re.search("https?://", script.read_text("utf-8")), script


def test_every_page_can_be_searched(site: Path) -> None:
    index = (site / "search" / "search_index.json").read_text("utf-8")
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb")]
    for page in pages:
        assert f'"{page.relative_to(ROOT / "docs").with_suffix(".html").as_posix()}' in index


def test_a_notebook_is_a_page_with_its_outputs(site: Path) -> None:
    page = (site / "tutorial.html").read_text("utf-8")
    notebook = json.loads((ROOT / "docs" / "tutorial.ipynb").read_text("utf-8"))
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    tables = sum("text/html" in output.get("data", {}) for output in outputs)
    assert page.count('<div class="textsim">') == tables > 5
    text = Html(page).text
    for output in outputs:
        for line in output.get("text", output.get("data", {}).get("text/plain", []))[:1]:
            assert "text/html" in output.get("data", {}) or line.strip() in text
    assert '<a href="tutorial.ipynb">' in page
    assert (site / "tutorial.ipynb").exists()
