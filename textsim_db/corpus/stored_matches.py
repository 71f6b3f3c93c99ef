"""The corpora against which documents are deduplicated: matches, normal forms and sizes of clusters."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from textsim_db.compare.match_rule import Criterion
from textsim_db.corpus.judged_records import JudgedDocument
from textsim_db.corpus.removal_summary import AnyDocument, Removal, StoredDocument
from textsim_db.db.engine import read_rows, transaction
from textsim_db.db.store import Store
from textsim_db.errors import DocumentError, DocumentNotFound
from textsim_db.measures.by_name import JACCARD
from textsim_db.read import search, statements
from textsim_db.results import Match
from textsim_db.text.run_ahead import cut
from textsim_db.write import write_batch

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus

LOOKED_UP_AT_ONCE = 4_000
"""The documents that are looked up at once."""


ScopedText = tuple[str, str, str | None]
"""A document as (key, text, scope)."""


class StoredMatches:
    """An iterable of documents that looks them up in some corpora."""

    def __init__(
        self,
        documents: Iterable[ScopedText],
        corpora: Sequence[Corpus],
        judged: Container[int],
    ) -> None:
        """judged: the numbers of documents whose judgements choose among their matches."""
        self.best: dict[int, Removal] = {}
        """For each other document with a match, its best one in the first corpus that has one."""
        self.of_judged: dict[int, list[Removal]] = {}
        """The matches of the judged documents, in the order of the corpora, the best first."""
        self._documents = documents
        self._corpora = corpora
        self._judged = judged

    def __iter__(self) -> Iterator[ScopedText]:
        for batch in cut(self._documents, LOOKED_UP_AT_ONCE, lambda each: len(each[1])):
            for corpus in self._corpora:
                self._look_up(corpus, [each for each in batch if int(each[0]) not in self.best])
            yield from batch

    def _look_up(self, corpus: Corpus, batch: list[ScopedText]) -> None:
        for (key, _, _), matches in zip(batch, _matches(corpus, batch), strict=True):
            number = int(key)
            removals = (
                Removal(number, StoredDocument(corpus.name, match.key), match.similarity)
                for match in matches
            )
            if number in self._judged:
                self.of_judged.setdefault(number, []).extend(removals)
            elif matches:
                self.best[number] = next(removals)


def _matches(corpus: Corpus, batch: list[ScopedText]) -> list[list[Match]]:
    """Return the documents that each document merges with, best first; none for a refused one."""
    if not batch:
        return []
    scopes = [str(scope) for _, _, scope in batch] if corpus.config.scoped else None
    texts, parts = [text for _, text, _ in batch], corpus._parts(scopes, len(batch))
    criterion = Criterion(JACCARD, corpus.config.threshold, for_merges=True)
    try:
        return corpus._current.search(search.query_many, texts, criterion, parts)
    except DocumentError:
        if len(batch) == 1:
            return [[]]
        middle = len(batch) // 2
        return _matches(corpus, batch[:middle]) + _matches(corpus, batch[middle:])


def documents_with_keys(
    corpora: Sequence[Corpus], keys: Iterable[str]
) -> dict[str, list[JudgedDocument]]:
    """Return the documents of corpora with some keys, in the order of the corpora."""
    documents: dict[str, list[JudgedDocument]] = {}
    for corpus in corpora:
        for key, *traits in corpus._current.read(_read_judged, [*keys]):
            stored = JudgedDocument(key, StoredDocument(corpus.name, key), *traits)
            documents.setdefault(key, []).append(stored)
    return documents


def form_in(corpora: Sequence[Corpus], document: StoredDocument) -> str:
    """Return the normal form of a document of one of these corpora; none if it was removed since."""
    with suppress(DocumentNotFound):
        return next(each for each in corpora if each.name == document.corpus).normal_form(
            document.key
        )
    return ""


def stored_sizes(corpora: Sequence[Corpus], removals: Iterable[Removal]) -> dict[AnyDocument, int]:
    """Return the sizes of the clusters that earlier runs stored with the kept documents."""
    stored = {each.kept for each in removals if isinstance(each.kept, StoredDocument)}
    sizes: dict[AnyDocument, int] = {}
    for corpus in corpora:
        keys = [document.key for document in stored if document.corpus == corpus.name]
        rows = corpus._current.read(_read_sizes, keys)
        sizes |= {StoredDocument(corpus.name, key): size for key, size in rows}
    return sizes


def _read_judged(store: Store, keys: list[str]) -> list[tuple[Any, ...]]:
    statement = store.corpus.statement(statements.JUDGED_DOCUMENTS)
    return read_rows(store.engine, statement, [store.corpus.origin, keys])


def _read_sizes(store: Store, keys: list[str]) -> list[tuple[Any, ...]]:
    return read_rows(store.engine, store.corpus.statement(statements.CLUSTER_SIZES), [keys])


def store_sizes(
    corpus: Corpus, cluster_sizes: dict[AnyDocument, int], keys: Sequence[str | None]
) -> None:
    """Store the sizes of the clusters, by kept document, whose kept documents the corpus has now.

    keys: the key of each document in the corpus; None: it has none.
    """
    sizes: dict[str, int] = {}
    for kept, size in cluster_sizes.items():
        key = keys[kept] if isinstance(kept, int) else kept.key
        if key is not None and (isinstance(kept, int) or kept.corpus == corpus.name):
            sizes[key] = size
    corpus._current.write(_write_sizes, sizes)


def _write_sizes(store: Store, sizes: dict[str, int]) -> None:
    with transaction(store.engine) as connection:
        write_batch.set_cluster_sizes(connection.cursor(), store.corpus, sizes)
