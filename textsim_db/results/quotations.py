"""The verdict on a quotation: whether it stands in a document, where, and what differs."""

from __future__ import annotations

from typing import Literal, NamedTuple

from textsim_db.results.html import note, output, table

QuotationVerdict = Literal["exact", "pieces", "altered", "absent"]


DifferenceRow = tuple[str, str, tuple[str, ...]]
"""Words of a quotation, those of the document, and their kinds."""


class QuotedPiece(NamedTuple):
    """A piece of a quotation and its place; a quotation without an ellipsis is one piece."""

    in_text: int
    """The words of the quotation before the piece."""
    words: int
    in_document: int | None
    """The words of the document before its place; None if the piece does not stand there."""
    words_in_document: int
    """The words of its place in the document."""
    left_out: str
    """The words of the document between the place of the piece before and this place."""
    kinds: tuple[str, ...]
    """The kinds of the words left out: numbers, negations, guard words of the corpus ("words") and
    numerals."""
    start: int
    """The characters of the quotation before the piece."""
    end: int
    """The characters of the quotation up to the end of the piece."""
    document_start: int | None = None
    """The characters of the document before the place; None if it is stored in a corpus."""
    document_end: int | None = None
    """The characters of the document up to the end of the place; None as for document_start."""


class QuotationDifference(NamedTuple):
    """A run of words in which a quotation and its document differ, or the signs of a piece."""

    in_text: int
    """The words of the quotation before the run."""
    quotation: str
    """The words of the quotation; empty if it leaves words out."""
    in_document: int | None
    """The words of the document before the run; None if the piece does not stand there."""
    document: str
    """The words of the document; empty if the quotation adds words."""
    kinds: tuple[str, ...]
    """The kinds that differ: numbers, negations, guard words of the corpus ("words"), numerals, units;
    or "symbols", if both runs are the signs of a piece and of its place."""


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
    """The runs in which an altered quotation differs from the document; and the signs in which an
    unaltered piece does, if the text of the document is at hand."""

    def shown_differences(self) -> list[DifferenceRow]:
        """Return the words that differ and those left out, each with those of the document."""
        left_out = [("", piece.left_out, piece.kinds) for piece in self.pieces if piece.left_out]
        return [(each.quotation, each.document, each.kinds) for each in self.differences] + left_out

    def _repr_html_(self) -> str:
        place = "" if self.key is None else f' in "{self.key}"'
        share = "" if self.share is None else f", share {self.share:.4f}"
        rows = [(*words, " ".join(kinds)) for *words, kinds in self.shown_differences()]
        shown = table(("quotation", "document", "kinds"), rows) if rows else ""
        return output(note(f"{self.verdict}{place}{share}"), shown)
