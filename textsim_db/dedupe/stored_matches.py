"""The corpora against which documents are deduplicated: matches, normal forms and sizes of clusters."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from textsim_db.base.run_ahead import cut
from textsim_db.compare.match_rule import Criterion
from textsim_db.db.engine import read_rows, transaction
from textsim_db.db.store import Store
from textsim_db.dedupe.judged_records import JudgedDocument
from textsim_db.dedupe.removal_summary import AnyDocument, Removal, StoredDocument
from textsim_db.errors import DocumentError, DocumentNotFound
from textsim_db.measures.by_name import JACCARD
from textsim_db.read import search, statements
from textsim_db.results import Match
from textsim_db.text.hashing import part_of_scope
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
        for key, *traits in corpus._current.call(_read_judged, [*keys]):
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


def _hash_of_key(key: str) -> int:
    return part_of_scope(key.encode("utf-8", "replace").decode())  # it may have a lone surrogate


class StoredSizes(NamedTuple):
    """The clusters that earlier runs stored with the kept documents."""

    sizes: dict[AnyDocument, int]
    counted: dict[AnyDocument, set[int]]
    """The hashes of the keys of their records, except the keys of the documents."""

    def recounted(self, links: Iterable[Removal], keys: Sequence[str | None]) -> list[int]:
        """Return the documents that these clusters count already; keys: of each document."""
        recounted = []
        counted = {kept: set(hashes) for kept, hashes in self.counted.items()}
        for number, kept, _ in sorted(links):
            key = keys[number] if isinstance(kept, StoredDocument) else None
            if key is None or not isinstance(kept, StoredDocument):
                continue
            hashes, own = counted.setdefault(kept, set()), _hash_of_key(key)
            if key == kept.key or own in hashes:
                recounted.append(number)
            hashes.add(own)
        return recounted


def stored_sizes(corpora: Sequence[Corpus], removals: Iterable[Removal]) -> StoredSizes:
    """Return the clusters of the kept documents before this run."""
    stored = {each.kept for each in removals if isinstance(each.kept, StoredDocument)}
    result = StoredSizes({}, {})
    for corpus in corpora:
        keys = [document.key for document in stored if document.corpus == corpus.name]
        for key, size, hashes in corpus._current.call(_read_sizes, keys):
            result.sizes[StoredDocument(corpus.name, key)] = size
            result.counted[StoredDocument(corpus.name, key)] = set(hashes)
    return result


def _read_judged(store: Store, keys: list[str]) -> list[tuple[Any, ...]]:
    statement = store.corpus.statement(statements.JUDGED_DOCUMENTS)
    return read_rows(store.engine, statement, [store.corpus.origin, keys])


def _read_sizes(store: Store, keys: list[str]) -> list[tuple[Any, ...]]:
    return read_rows(store.engine, store.corpus.statement(statements.CLUSTER_SIZES), [keys])


def store_sizes(
    corpus: Corpus,
    cluster_sizes: Mapping[AnyDocument, int],
    links: Iterable[Removal],
    keys: Sequence[str | None],
) -> None:
    """Store the sizes of the clusters whose kept documents the corpus has now.

    links: the other documents of these clusters. keys: the key of each document in the corpus;
    None: it has none.
    """

    def key_of_kept(kept: AnyDocument) -> str | None:
        if isinstance(kept, int):
            return keys[kept]
        return kept.key if kept.corpus == corpus.name else None

    sizes = {
        key: size for kept, size in cluster_sizes.items() if (key := key_of_kept(kept)) is not None
    }
    counted = [
        (key, _hash_of_key(own))
        for number, kept, _ in links
        if (key := key_of_kept(kept)) is not None and (own := keys[number]) not in (None, key)
    ]
    corpus._current.call_once(_write_sizes, sizes, counted)


def _write_sizes(store: Store, sizes: dict[str, int], counted: list[tuple[str, int]]) -> None:
    with transaction(store.engine) as connection:
        write_batch.set_cluster_sizes(connection.cursor(), store.corpus, sizes, counted)
