"""Passages: the runs of words that a text shares with documents."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from textsim_db.corpus.arguments import CheckedArguments, checked_count
from textsim_db.errors import ConfigurationError, Misfit
from textsim_db.files.several_texts import Documents, stream_documents
from textsim_db.results import (
    Contamination,
    Passage,
    PassageList,
    Quotation,
    Region,
    SharedPassage,
)
from textsim_db.results.html import ResultList
from textsim_db.settings.check_values import check_count
from textsim_db.settings.corpus_settings import MAX_GAP, MIN_QUOTATION
from textsim_db.text.storable import Key, Scope, wrong_value


class PassageMethods(CheckedArguments):
    """Methods that find shared runs of words."""

    def passages(
        self,
        text: str,
        min_words: int | None = None,
        max_results: int | None = None,
        scope: Scope | None = None,
        max_documents: int | None = None,
    ) -> PassageList:
        """Return the runs of words that a text shares with documents, the longest first.

        Every run of at least `passages` words, a setting of the corpus, is found, unless all its
        shingles are in very many documents: the attribute `common` of the result lists such runs. Words
        are those of the normal form, without the stop words of the corpus, so punctuation, case and the
        ends of lines do not matter. If the shingles of the corpus are characters, characters are
        counted, not words. scope is that of query().

        Args:
            text: the text to compare; it is not stored.
            min_words: the words of the shortest passage; by default `passages`, and not fewer.
            max_results: the largest number of passages; None returns all.
            max_documents: do not read the documents of a run that more documents have, such as a header.
                The attribute `common` of the result lists these runs too. A passage that is partly in
                such a run may be missed. None reads all documents.

        Examples:
            >>> corpus.passages("They say the city council approved the new budget.", max_results=1)
            [Passage(key='monday', words=7, in_text=2, in_document=0, start=9, end=49)]
        """
        from textsim_db.read import find_passages

        most = checked_count(max_results, "max_results")
        limit = checked_count(max_documents, "max_documents")
        self._check_passages(min_words)
        all_passages = self._current.checked().search(
            find_passages.passages, text, min_words, limit, self._part(scope)
        )
        return PassageList(all_passages[:most], all_passages.common)

    def regions(
        self,
        text: str,
        gap: int = 50,
        min_words: int | None = None,
        max_results: int | None = None,
        scope: Scope | None = None,
        max_documents: int | None = None,
    ) -> ResultList[Region]:
        """Return the regions of documents that a text has in changed words, the longest first.

        A region joins the passages of a document while no gap between two of them has more than `gap`
        words, neither in the text nor in the document. If less than 0.34 of its words are equal, its
        gaps are made shorter. Each passage that passages() returns is in one region. The other arguments
        are those of passages().

        Args:
            gap: the largest number of words between two passages of a region, 0 to 10,000.

        Examples:
            >>> text = "The city council approved the budget, a new budget for schools on Monday."
            >>> region, _ = corpus.regions(text, gap=5)
            >>> region.words_in_text, region.in_document, [each.words for each in region.passages]
            (13, 0, [5, 6])
        """
        from textsim_db.read import find_passages

        most = checked_count(max_results, "max_results")
        limit = checked_count(max_documents, "max_documents")
        check_count(gap, "gap", 0, MAX_GAP)
        self._check_passages(min_words)
        all_regions = self._current.checked().search(
            find_passages.regions, text, gap, min_words, limit, self._part(scope)
        )
        return ResultList(all_regions[:most])

    def characters(self, passage: Passage, text: str | None = None) -> tuple[int, int]:
        """Return the characters before a passage in the text of its document, and up to its end.

        `start` and `end` of the passage are characters of the text that was searched for.

        Args:
            passage: a passage of the document.
            text: the text of the document, because a corpus stores only words; None reads the row of the
                attached table.

        Raises:
            DocumentError: the text has too few words, so it is another text, or it has a NUL character.
            DocumentNotFound: no text is given, and no attached table has the document.

        Examples:
            >>> _, passage = corpus.passages("They say the city council approved the new budget.")
            >>> text = "The city COUNCIL approved the new budget (for schools) on Monday."
            >>> start, end = corpus.characters(passage, text)
            >>> text[start:end]
            'The city COUNCIL approved the new budget'
        """
        from textsim_db.read import find_passages
        from textsim_db.sync import read_source

        if text is None:
            text = self._current.call(read_source.original_text, passage.key)
        return self._current.call(find_passages.characters, text, passage)

    def quote(
        self,
        text: str,
        key: Key | None = None,
        scope: Scope | None = None,
        shortest: int = MIN_QUOTATION,
        original: str | None = None,
    ) -> Quotation:
        """Return whether a quotation stands in a document, where, and what differs.

        The verdicts are those of quote(): exact, pieces, altered and absent. Words are those of the
        normal form, without the stop words of the corpus. A removed "not" decides nothing: the kinds
        of differences and omissions name it. scope is that of query().

        Args:
            text: the quotation, of at most 500 words; it is not stored.
            key: the document in which it should stand. By default the documents are asked that share a
                run of `passages` words, a setting of the corpus, with the quotation, and the best is
                returned; of equals, the one with the first key.
            shortest: a quotation of fewer words raises an error, because it stands in many texts by
                chance. If fewer than four are allowed, such a quotation is exact or absent.
            original: the text of the document, because a corpus stores only words. With it, the pieces
                have their characters in it, and signs that differ are named, such as "%" and "<".

        Raises:
            DocumentError: the quotation has too few or too many words, or too few for the passages of
                the corpus, or a NUL character, or the original has other words than the document.
            ConfigurationError: no key is given and the corpus has no passages, or shortest is out of
                range.

        Examples:
            >>> quotation = corpus.quote("the city council never approved the new budget", "update")
            >>> quotation.verdict, quotation.share, quotation.differences[0].kinds
            ('altered', 0.875, ('negations',))
            >>> corpus.quote("approved the NEW budget for schools").key
            'monday'
        """
        from textsim_db.read import find_quotations

        own_key = None if key is None else self._key(key)
        return self._current.checked().search(
            find_quotations.quote, text, own_key, self._part(scope), shortest, original
        )

    def shared_passages(
        self, min_words: int | None = None, max_documents: int | None = None
    ) -> Generator[SharedPassage, None, None]:
        """Yield the runs of words that documents of the corpus share, for all pairs, in one snapshot.

        In a scoped corpus, both documents have the same scope. A header that many documents have makes a
        passage of every two of them. A run is left out if all its shingles are in very many documents.

        Args:
            min_words: the words of the shortest passage; by default `passages`, and not fewer.
            max_documents: do not compare documents because of a run that more documents have, such as a
                header. A warning is logged, because a passage in such a run may be missed. The work and
                the passages of a run grow with the square of its documents. None compares all.

        Examples:
            >>> list(corpus.shared_passages())
            [SharedPassage(a='monday', b='update', words=11, in_a=0, in_b=0)]
        """
        from textsim_db.read import find_passages

        limit = checked_count(max_documents, "max_documents")
        yield from self._current.loaded().stream(find_passages.shared_passages, min_words, limit)

    def contamination(
        self,
        records: Documents,
        min_words: int | None = None,
        scope: Scope | None = None,
        max_documents: int | None = None,
        *,
        key: str | None = None,
        text: str | None = None,
    ) -> Generator[Contamination, None, None]:
        """Yield what each record of a test set shares with the documents, in the order of the records.

        The other arguments are those of passages(). Each record has the runs that were left out of its
        search.

        Args:
            records: pairs of key and text, which are read as they are needed; or what add_many() takes:
                a mapping of key to text, or with `key` and `text` as there a frame or records.

        Raises:
            ConfigurationError: the corpus has no passages, an argument is out of range, or a record is
                no pair.

        Examples:
            >>> question = "The city council approved the new budget, or not?"
            >>> (record,) = corpus.contamination([("q", question)])
            >>> record.coverage, [passage.key for passage in record.passages]
            (0.7777777777777778, ['monday', 'update'])
        """
        from textsim_db.read import find_passages

        texts, part = map(_key_and_text, stream_documents(records, key, text)), self._part(scope)
        limit = checked_count(max_documents, "max_documents")
        yield from (
            self._current.checked()
            .loaded()
            .stream(find_passages.contamination, texts, min_words, limit, part)
        )

    def _check_passages(self, min_words: int | None) -> None:
        """Raise ConfigurationError unless the corpus finds passages of min_words words.

        The settings may be outdated, so they are loaded again before the error is raised.
        """
        from textsim_db.read import find_passages

        try:
            find_passages.least_words(self._current.store, min_words)
        except ConfigurationError:
            find_passages.least_words(self._current.loaded().store, min_words)


def _key_and_text(record: Any) -> tuple[str, str]:
    # A mapping or a string of two characters could be unpacked, too.
    if not isinstance(record, tuple | list):
        raise ConfigurationError(
            f"a record is of type {type(record).__name__}; expected pairs of key and text such as "
            "zip(keys, texts)"
        )
    if len(record) != 2:
        raise ConfigurationError(
            f"a record has {len(record)} values; expected its key and its text"
        )
    key, text = record
    if isinstance(key, Misfit):
        raise wrong_value(key, "key", "str, an integer or a UUID")
    return str(key), text
