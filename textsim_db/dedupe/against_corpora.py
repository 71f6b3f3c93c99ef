"""Finds the documents of a stream that match a document of a corpus, and passes the others on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from textsim_db.errors import DocumentError
from textsim_db.results import Match
from textsim_db.text.run_ahead import cut

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus

LOOKED_UP_AT_ONCE = 4_000
"""The documents that are looked up at once."""

KeyedText = tuple[str, str, str | None]
"""A document as (key, text, scope)."""


class Standing(NamedTuple):
    """A document of a corpus that stands in the way of a new document."""

    corpus: str
    key: str
    similarity: float
    """The similarity of the two documents."""


class AgainstCorpora:
    """An iterable of the documents that match no document of some corpora."""

    def __init__(self, documents: Iterable[KeyedText], corpora: Sequence[Corpus]) -> None:
        self.standing: dict[str, Standing] = {}
        """For each key that was left out, its best match in the first corpus that has one."""
        self._documents = documents
        self._corpora = corpora

    def __iter__(self) -> Iterator[KeyedText]:
        for batch in cut(self._documents, LOOKED_UP_AT_ONCE, lambda each: len(each[1])):
            for corpus in self._corpora:
                self._look_up(corpus, [each for each in batch if each[0] not in self.standing])
            yield from (each for each in batch if each[0] not in self.standing)

    def _look_up(self, corpus: Corpus, batch: list[KeyedText]) -> None:
        for (key, _, _), matches in zip(batch, _matches(corpus, batch), strict=True):
            if matches:
                best = matches[0]
                self.standing[key] = Standing(corpus.name, best.key, best.similarity)


def _matches(corpus: Corpus, batch: list[KeyedText]) -> list[list[Match]]:
    """Return the best match of each document; one that cannot be compared matches nothing."""
    if not batch:
        return []
    scopes = [str(scope) for _, _, scope in batch] if corpus.config.scoped else None
    try:
        return corpus.query_many([text for _, text, _ in batch], max_results=1, scope=scopes)
    except DocumentError:
        if len(batch) == 1:
            return [[]]
        middle = len(batch) // 2
        return _matches(corpus, batch[:middle]) + _matches(corpus, batch[middle:])
