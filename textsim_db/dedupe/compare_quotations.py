"""quote() and quotes(): whether quotations stand in texts in memory, without a database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from textsim_db.compare.quotation_verdicts import (
    DocumentWords,
    Original,
    best,
    readings_of,
    verdict_on,
)
from textsim_db.results import Quotation
from textsim_db.results.html import ResultList
from textsim_db.settings.check_values import several_items
from textsim_db.settings.corpus_settings import MIN_QUOTATION
from textsim_db.sketch.sketch_texts import places_of_words


def quote(text: str, document: str, shortest: int = MIN_QUOTATION) -> Quotation:
    """Return whether a quotation stands in a document, where, and what differs.

    It needs no database. Words are those of the normal form, so punctuation, case and the ends of lines
    do not matter. The verdict is

    - `exact`: the words stand there in a row;
    - `pieces`: an ellipsis (..., …) or words in square brackets divide the quotation, and each piece of
      three words or more stands there, in order;
    - `altered`: a run of the document has at least 70 % of the words, in order;
    - `absent`: nothing of the kind.

    Args:
        text: the quotation, of at most 500 words.
        document: the text in which it should stand.
        shortest: a quotation of fewer words raises an error, because it stands in many texts by chance.
            If fewer than four are allowed, such a quotation is exact or absent.

    Raises:
        DocumentError: the quotation has too few or too many words, or a text has a NUL character.
        ConfigurationError: shortest is out of range.

    Examples:
        >>> document = "On Monday the council did not approve the new budget for schools."
        >>> quotation = textsim_db.quote("the council did approve the new budget", document)
        >>> quotation.verdict, quotation.share
        ('altered', 0.8571428571428572)
        >>> quotation.differences[0].document, quotation.differences[0].kinds
        ('not', ('negations',))
        >>> (piece,) = quotation.pieces
        >>> document[piece.document_start:piece.document_end]
        'the council did not approve the new budget'
    """
    readings = readings_of(text, shortest)
    return verdict_on(readings, _document(document))


def quotes(
    texts: Iterable[str],
    documents: Mapping[str, str] | Mapping[int, str] | Iterable[str],
    shortest: int = MIN_QUOTATION,
) -> ResultList[Quotation]:
    """Return the verdict on each quotation by the document that has it best; of equals, by the first.

    Args:
        texts: the quotations.
        documents: the texts, which their places name in the result, from 0 on; or a mapping of keys to
            texts.
        shortest: as for quote().

    Raises:
        DocumentError: a quotation has too few or too many words, or a text has a NUL character.
        ConfigurationError: shortest is out of range, or the texts or the documents are one text.

    Examples:
        >>> documents = {"a": "Rain in the north on Monday.", "b": "Sun in the south of the country."}
        >>> [(each.verdict, each.key) for each in textsim_db.quotes(["rain IN the north"], documents)]
        [('exact', 'a')]
    """
    several_items(texts, "quotes() takes several texts, such as [text]")
    several_items(documents, "quotes() takes several documents, such as [document]")
    named = documents if isinstance(documents, Mapping) else dict(enumerate(documents))
    prepared = [(key, _document(document)) for key, document in named.items()]
    verdicts = ResultList[Quotation]()
    for text in texts:
        readings = readings_of(text, shortest)
        each = (verdict_on(readings, document)._replace(key=key) for key, document in prepared)
        verdict = best([Quotation("absent"), *each])
        verdicts.append(verdict._replace(key=None) if verdict.share is None else verdict)
    return verdicts


def _document(text: str) -> DocumentWords:
    words, places = places_of_words(text, None)
    return DocumentWords.of(words, Original(text, places))
