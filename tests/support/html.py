"""Pages as a browser reads them."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import NamedTuple

VOID = {"br", "hr", "img", "input", "link", "meta", "rect"}
"""Elements that need no end."""


class Element(NamedTuple):
    """An element without what is in it."""

    tag: str
    attributes: dict[str, str]


class Html(HTMLParser):
    """The elements and the texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self.text = ""
        """The text of all elements but style."""
        self.texts: dict[str, list[str]] = {}
        """The texts that stand directly in elements, by tag."""
        self.rows: list[list[str]] = []
        """The cells of each row of each table."""
        self.unclosed: list[str] = []
        """The tags of the elements that have no end, and of those with a wrong end."""
        self.feed(page)
        self.close()

    @property
    def tags(self) -> list[str]:
        """The tags of all elements."""
        return [element.tag for element in self.elements]

    def values(self, *names: str) -> set[str]:
        """Return the values of some attributes, of all elements."""
        attributes = [pair for each in self.elements for pair in each.attributes.items()]
        return {value for name, value in attributes if name in names}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.unclosed.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.unclosed.pop()

    def handle_endtag(self, tag: str) -> None:
        if self.unclosed[-1:] == [tag]:
            self.unclosed.pop()

    def handle_data(self, data: str) -> None:
        if "style" not in self.unclosed:
            self.text += data
        if self.unclosed:
            self.texts.setdefault(self.unclosed[-1], []).append(data)
        if {"td", "th"} & set(self.unclosed):
            self.rows[-1][-1] += data
