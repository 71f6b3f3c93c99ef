"""The verdict on a quotation: whether it stands in a document, where, and what differs."""

from __future__ import annotations

from typing import Literal, NamedTuple

from textsim_db.results.html import note, output, table

QuotationVerdict = Literal["exact", "pieces", "altered", "absent"]


class QuotedPiece(NamedTuple):
    """A piece of a quotation and its place; a quotation without an ellipsis is one piece."""

    in_text: int
    """The words of the quotation before the piece."""
    words: int
    """The words of the piece."""
    in_document: int | None
    """The words of the document before its place; None if the piece does not stand there."""
    words_in_document: int
    """The words of its place in the document."""
    left_out: str
    """The words of the document between the place of the piece before and this place."""
    kinds: tuple[str, ...]
    """The kinds of the words left out: numbers, negations, or guard words of the corpus ("words")."""
    start: int
    """The characters of the quotation before the piece."""
    end: int
    """The characters of the quotation up to the end of the piece."""
    document_start: int | None = None
    """The characters of the document before the place; None if it is stored in a corpus."""
    document_end: int | None = None
    """The characters of the document up to the end of the place; None as for document_start."""


class QuotationDifference(NamedTuple):
    """A run of words in which a quotation and its document differ."""

    in_text: int
    """The words of the quotation before the run."""
    quotation: str
    """The words of the quotation; empty if it leaves words out."""
    in_document: int | None
    """The words of the document before the run; None if the piece does not stand there."""
    document: str
    """The words of the document; empty if the quotation adds words."""
    kinds: tuple[str, ...]
    """The kinds that differ: numbers, negations, and guard words of the corpus ("words")."""


class Quotation(NamedTuple):
    """The verdict on a quotation."""

    verdict: QuotationVerdict
    """One of exact, pieces, altered and absent."""
    key: str | int | None = None
    """The document in which the quotation stands; None if it is absent, or if there is one document."""
    share: float | None = None
    """1 - edits / words of the quotation: 1.0 if it is unaltered, 0.7 or more; None if it is absent."""
    pieces: tuple[QuotedPiece, ...] = ()
    """The pieces in their order; none if it is absent."""
    differences: tuple[QuotationDifference, ...] = ()
    """The runs in which an altered quotation differs from the document."""

    def _repr_html_(self) -> str:
        place = "" if self.key is None else f' in "{self.key}"'
        share = "" if self.share is None else f", share {self.share:.4f}"
        rows = [(d.quotation, d.document, " ".join(d.kinds)) for d in self.differences]
        gaps = [("", p.left_out, " ".join(p.kinds)) for p in self.pieces if p.left_out]
        shown = table(("quotation", "document", "kinds"), rows + gaps) if rows or gaps else ""
        return output(note(f"{self.verdict}{place}{share}"), shown)
