"""quote() and quotes(): whether quotations stand in texts in memory, without a database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from textsim_db.compare.quotations import DocumentWords, best, verdict_on, with_places
from textsim_db.compare.readings import Reading, readings_of
from textsim_db.results import Quotation
from textsim_db.results.html import ResultList
from textsim_db.settings.corpus_settings import MIN_QUOTATION
from textsim_db.sketch.sketch_texts import places_of_words
from textsim_db.text.word_places import WordPlaces


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
    return _Document.of(document).verdict(readings)


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
        ConfigurationError: shortest is out of range.

    Examples:
        >>> documents = {"a": "Rain in the north on Monday.", "b": "Sun in the south of the country."}
        >>> [(each.verdict, each.key) for each in textsim_db.quotes(["rain IN the north"], documents)]
        [('exact', 'a')]
    """
    named = documents if isinstance(documents, Mapping) else dict(enumerate(documents))
    prepared = [(key, _Document.of(document)) for key, document in named.items()]
    verdicts = ResultList[Quotation]()
    for text in texts:
        readings = readings_of(text, shortest)
        verdicts.append(best([Quotation("absent"), *_verdicts(readings, prepared)]))
    return verdicts


def _verdicts(
    readings: list[Reading], documents: list[tuple[str | int, _Document]]
) -> Iterable[Quotation]:
    for key, document in documents:
        verdict = document.verdict(readings)
        if verdict.share is not None:
            yield verdict._replace(key=key)


class _Document(NamedTuple):
    words: DocumentWords
    places: WordPlaces

    @classmethod
    def of(cls, text: str) -> _Document:
        words, places = places_of_words(text, None)
        return cls(DocumentWords.of(words), places)

    def verdict(self, readings: list[Reading]) -> Quotation:
        return with_places(verdict_on(readings, self.words), self.places)
