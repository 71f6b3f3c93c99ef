"""Finds the documents to remove so that one document of each cluster stays, in memory.

A document that matches a given corpus is always removed.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import combinations, groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.cluster import linkages
from textsim_db.cluster.join import Join
from textsim_db.cluster.keep_rule import Preference
from textsim_db.cluster.loaded_documents import LoadedDocuments
from textsim_db.cluster.pair_groups import JudgedPairs, judged_groups
from textsim_db.cluster.spanning_forest import Ids, Links, join, joined_links, roots
from textsim_db.compare.match_rule import Criterion
from textsim_db.compare.packed_pairs import is_among, pack
from textsim_db.corpus.loaded_texts import KeyedText, LoadedTexts, key_of
from textsim_db.corpus.removal_summary import (
    AnyDocument,
    Removal,
    RemovalSummary,
    StoredDocument,
    summarize,
)
from textsim_db.db.engine import read_rows, transaction
from textsim_db.db.store import Store
from textsim_db.errors import ConfigurationError, DocumentError, DocumentNotFound
from textsim_db.measures.by_name import JACCARD
from textsim_db.read import search, statements
from textsim_db.results import AddReport, Match
from textsim_db.settings.corpus_settings import (
    CorpusConfig,
    CorpusSettings,
    Linkage,
    check_linkage,
)
from textsim_db.sketch.ragged import Parts
from textsim_db.text.left_out_words import with_lists
from textsim_db.text.numba_compiler import BoolArray, Int64Array
from textsim_db.text.run_ahead import cut
from textsim_db.write import write_batch

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus


LOOKED_UP_AT_ONCE = 4_000
"""The documents that are looked up at once."""


ScopedText = tuple[str, str, str | None]
"""A document as (key, text, scope)."""


class _Against:
    """An iterable of documents that looks them up in some corpora."""

    def __init__(self, documents: Iterable[ScopedText], corpora: Sequence[Corpus]) -> None:
        self.known: dict[int, Removal] = {}
        """For each document with a match, its best one in the first corpus that has one."""
        self._documents = documents
        self._corpora = corpora

    def __iter__(self) -> Iterator[ScopedText]:
        for batch in cut(self._documents, LOOKED_UP_AT_ONCE, lambda each: len(each[1])):
            for corpus in self._corpora:
                self._look_up(corpus, [each for each in batch if int(each[0]) not in self.known])
            yield from batch

    def _look_up(self, corpus: Corpus, batch: list[ScopedText]) -> None:
        for (key, _, _), matches in zip(batch, _matches(corpus, batch), strict=True):
            if matches:
                best = StoredDocument(corpus.name, matches[0].key)
                self.known[int(key)] = Removal(int(key), best, matches[0].similarity)


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


class Rule(NamedTuple):
    """Decides which documents are near-duplicates, and which document of a cluster stays."""

    preference: Preference
    """Decides which document of a cluster stays."""
    settings: CorpusSettings
    """Decide which documents are near-duplicates."""
    linkage: str = Linkage.KEPT
    """Decides which documents make a cluster."""
    keep_up_to: int = 1
    """How many documents of a cluster stay: the kept one, and those that are least similar to it."""

    def config(self) -> CorpusConfig:
        """Return the complete settings."""
        if isinstance(self.settings, CorpusConfig):
            return self.settings
        return with_lists(self.settings).complete()

    def against(self, corpora: Sequence[Corpus]) -> Rule:
        """Return this rule with the settings of the first corpus, if there is one.

        Raises ConfigurationError if only the documents, or only a corpus, have scopes.
        """
        for corpus in corpora:
            corpus.config.check_scope(corpus.name, self.settings.scoped)
        if not corpora:
            return self
        settings = replace(corpora[0].config, is_unique=False, unique_from=None, keep_for=None)
        return self._replace(settings=settings)


class Document(NamedTuple):
    """A document to compare with all others, or with the others of its scope."""

    text: str | None
    """None if it cannot be compared."""
    value: Any = None
    """The value of the preference's column."""
    scope: str | None = None
    """None if the settings know no scopes."""


class JudgedDocuments(NamedTuple):
    """A judgement of two documents."""

    a: int
    """The place of one document among all, from 0 on; a higher number if it is none of them."""
    b: int
    """The same of the other document."""
    verdict: str
    place: str
    """The file and the line of the judgement, for messages."""


@dataclass(frozen=True, slots=True)
class Deduplication:
    """The result: the documents to remove, and the refused documents."""

    documents: int
    """The number of all documents."""
    removals: list[Removal]
    refused: list[tuple[int, str]]
    """The place of each document that cannot be compared, with the reason. It stays."""
    without_words: int
    """The documents without words. They match nothing, so they stay."""
    sizes: dict[AnyDocument, int] = field(default_factory=dict)
    """The sizes of clusters before this run, of documents of corpora."""
    summary: RemovalSummary | None = None
    """The similarities of removed documents; None in the result of an earlier run."""
    also_kept: list[Removal] = field(default_factory=list)
    """The documents that stay beside the kept document of their cluster."""

    def mask(self) -> npt.NDArray[np.bool_]:
        """Return which documents stay: bool of shape (documents,)."""
        stays = np.ones(self.documents, np.bool_)
        stays[[removal.number for removal in self.removals]] = False
        return stays

    def count_known(self) -> int:
        """Return how many documents are removed because of a document of a corpus."""
        return sum(isinstance(removal.kept, StoredDocument) for removal in self.removals)

    def cluster_sizes(self) -> dict[AnyDocument, int]:
        """Return the size of each cluster by its kept document; those of corpora come last."""
        joined = Counter(link.kept for link in (*self.removals, *self.also_kept))
        order = sorted(joined, key=lambda kept: (isinstance(kept, StoredDocument), kept))
        return {kept: joined[kept] + self.sizes.get(kept, 1) for kept in order}

    def annotations(self) -> dict[str, list[Any]]:
        """Return the values of each document by the names of ANNOTATION; None for a missing one."""
        links = [*self.removals, *self.also_kept]
        cluster: list[int | None] = [None] * self.documents
        size = [1] * self.documents
        similarity: list[float | None] = [None] * self.documents
        sizes = self.cluster_sizes()
        names = {kept: place for place, kept in enumerate(sizes, start=1)}
        for number, kept, value in links:
            cluster[number], size[number], similarity[number] = names[kept], sizes[kept], value
            if isinstance(kept, int):
                cluster[kept], size[kept] = names[kept], sizes[kept]
        values = (cluster, size, self.mask().tolist(), similarity)
        return dict(zip(ANNOTATION, values, strict=True))


ANNOTATION: dict[str, Any] = {"cluster": 1, "size": 1, "kept": True, "similarity": 1.0}
"""The fields of an annotated document, with an example of each value.

cluster: the number of its cluster, from 1 on in the order of the kept documents; None for a document
alone. size: the documents of its cluster, with those that earlier runs added or removed; 1 without one.
kept: whether it stays. similarity: to the kept document of its cluster, which a corpus may have.
"""


def deduplicate(
    documents: Iterable[Document],
    rule: Rule,
    progress: Callable[[AddReport], None] | None = None,
    against: Sequence[Corpus] = (),
    judgements: Callable[[], list[JudgedDocuments]] | None = None,
    memory: int | None = None,
) -> Deduplication:
    """Find the documents to remove; documents are numbered from 0.

    progress is called as by Corpus.add_many. against: corpora whose documents stand, before all others;
    a document that matches one of them is removed. judgements: called after the documents were read.
    memory: as for LoadedTexts. Raises ConfigurationError if two values cannot be compared.
    """
    numbered = _Numbered(documents, with_values=rule.preference.column is not None)
    looked_up = _Against(numbered, against)
    loaded = LoadedTexts(rule.config(), for_merges=True, memory=memory)
    report = AddReport()
    for batch in loaded.read(_without_missing_scopes(looked_up if against else numbered)):
        report.added += len(batch.keys)
        report.without_words += batch.count_without_words()
        report.refused += batch.refused
        if progress is not None:
            progress(report)
    lengths = np.frombuffer(numbered.lengths, np.int64)
    numbers, known = loaded.numbers(), looked_up.known
    ranks = rule.preference.ranks(lengths, numbered.values)[numbers]
    is_known = np.isin(numbers, [*known])
    judged = judgements and _judged_pairs(judgements(), numbers, is_known, loaded.parts())
    removed, kept, similarity = _removals(loaded.host(), rule, ranks, judged, is_known)
    ends = numbers[removed].tolist(), numbers[kept].tolist(), similarity.tolist()
    links = {number: Removal(number, *rest) for number, *rest in zip(*ends, strict=True)}
    for number, match in known.items():
        if number not in links or links[number].similarity <= match.similarity:
            links[number] = match
    removals, also_kept = _without_most_different([*links.values()], rule.keep_up_to - 1, known)

    def forms_of(documents: Collection[AnyDocument]) -> dict[AnyDocument, str]:
        stored = {each for each in documents if isinstance(each, StoredDocument)}
        places = sorted(each for each in documents if isinstance(each, int))
        return loaded.forms(places) | {each: form_in(against, each) for each in stored}

    return Deduplication(
        len(lengths),
        removals,
        [(int(refusal.key), refusal.reason) for refusal in report.refused],
        report.without_words,
        _stored_sizes(against, removals),
        summarize(removals, forms_of),
        also_kept,
    )


def form_in(corpora: Sequence[Corpus], document: StoredDocument) -> str:
    """Return the normal form of a document of one of these corpora; none if it was removed since."""
    with suppress(DocumentNotFound):
        return next(each for each in corpora if each.name == document.corpus).normal_form(
            document.key
        )
    return ""


def _stored_sizes(corpora: Sequence[Corpus], removals: Iterable[Removal]) -> dict[AnyDocument, int]:
    stored = {each.kept for each in removals if isinstance(each.kept, StoredDocument)}
    sizes: dict[AnyDocument, int] = {}
    for corpus in corpora:
        keys = [document.key for document in stored if document.corpus == corpus.name]
        rows = corpus._current.read(_read_sizes, keys)
        sizes |= {StoredDocument(corpus.name, key): size for key, size in rows}
    return sizes


def _read_sizes(store: Store, keys: list[str]) -> list[tuple[Any, ...]]:
    return read_rows(store.engine, store.corpus.statement(statements.CLUSTER_SIZES), [keys])


def store_sizes(corpus: Corpus, result: Deduplication, keys: Sequence[str | None]) -> None:
    """Store the sizes of the clusters whose kept documents the corpus has now.

    keys: the key of each document.
    """
    sizes: dict[str, int] = {}
    for kept, size in result.cluster_sizes().items():
        key = keys[kept] if isinstance(kept, int) else kept.key
        if key is not None and (isinstance(kept, int) or kept.corpus == corpus.name):
            sizes[key] = size
    corpus._current.write(_write_sizes, sizes)


def _write_sizes(store: Store, sizes: dict[str, int]) -> None:
    with transaction(store.engine) as connection:
        write_batch.set_cluster_sizes(connection.cursor(), store.corpus, sizes)


def _without_most_different(
    removals: list[Removal], count: int, known: Collection[int]
) -> tuple[list[Removal], list[Removal]]:
    """Return the removals without some of each cluster, those least similar to the kept one, and these.

    Of equally similar documents the first is taken. known: the documents that do not stay.
    """
    if count == 0:
        return removals, []
    choosable = (each for each in removals if each.number not in known)
    by_cluster = sorted(choosable, key=lambda each: (each.kept, each.similarity, each.number))
    also_kept = [
        removal
        for _, members in groupby(by_cluster, lambda each: each.kept)
        for removal in islice(members, count)
    ]
    stay = {removal.number for removal in also_kept}
    return [removal for removal in removals if removal.number not in stay], also_kept


def _removals(
    host: LoadedDocuments,
    rule: Rule,
    ranks: Int64Array,
    judged: JudgedPairs | None,
    is_known: BoolArray,
) -> Links:
    """Return the documents to remove, left, with the documents that are kept instead, right.

    is_known: whether a corpus has a document. With linkage "kept" it may be more similar to another one.
    """
    criterion = Criterion(JACCARD, rule.settings.threshold, for_merges=True)

    def ranked(ids: Ids) -> Ids:
        order: Ids = ids[np.argsort(ranks[ids])]
        return order

    def only(ids: Ids) -> Join:
        return Join(host.only(ids), criterion)

    linkage = check_linkage(rule.linkage)
    join = Join(host, criterion, is_known)
    if is_known.any() and not (judged is None and linkage is Linkage.KEPT):
        join = only(np.flatnonzero(~is_known))
    if judged is None:
        return joined_links(linkages.removals(join, linkage, ranked))
    groups = judged_groups(join, only, judged, linkage, ranked, np.sort)
    return joined_links(linkages.all_but_first(join, groups, ranked))


def _judged_pairs(
    judgements: list[JudgedDocuments], numbers: Int64Array, is_known: BoolArray, parts: Parts
) -> JudgedPairs:
    """Return the judged pairs among documents, as textsim._judged_groups finds them in a corpus.

    numbers, parts: those of each document. is_known: whether a corpus has it, so that it is left out.
    """
    compared = numbers[~is_known]
    for judged in judgements:
        if judged.a == judged.b:
            raise ConfigurationError(f"{judged.place}: the pair has the same record twice")
    pairs = np.array([judged[:2] for judged in judgements], np.int64).reshape(-1, 2)
    ids = np.searchsorted(numbers, pairs)
    are_there = is_among(pairs.ravel(), compared).reshape(-1, 2)
    if parts is not None:
        both = np.flatnonzero(are_there.all(axis=1))
        for place in both[np.not_equal(*parts[ids[both]].T)].tolist():
            raise ConfigurationError(
                f"{judgements[place].place}: the records of the pair have different scopes"
            )
    verdicts = np.array([judged.verdict for judged in judgements], np.str_)
    same, different = (pairs[verdicts == verdict] for verdict in ("same", "different"))
    groups = np.arange(pairs.max(initial=-1) + 1)
    join(groups, *same.T.copy())
    groups = roots(groups)
    ends = groups[different]
    contradicted = ends[ends[:, 0] == ends[:, 1], 0]
    members: dict[tuple[int, int], list[int]] = {}
    for number in np.intersect1d(same, compared).tolist():
        if groups[number] not in contradicted:
            id_ = int(np.searchsorted(numbers, number))
            part = 0 if parts is None else int(parts[id_])
            members.setdefault((int(groups[number]), part), []).append(id_)
    joined = [pair for ids_ in members.values() for pair in combinations(ids_, 2)]
    apart_ids = ids[(verdicts == "different") & are_there.all(axis=1)]
    return JudgedPairs(_packed(joined), _packed(apart_ids))


def _packed(pairs: npt.ArrayLike) -> Int64Array:
    """Pack pairs of documents, and sort them."""
    ends = np.sort(np.array(pairs, np.int64).reshape(-1, 2), axis=1)
    return np.sort(pack(*ends.T))


def _without_missing_scopes(documents: Iterable[KeyedText]) -> Iterator[KeyedText]:
    """Yield (key, text) of documents without a scope, which are read faster."""
    for document in documents:
        yield document if document[2:] != (None,) else document[:2]


class _Numbered:
    """Documents with their numbers as keys; records lengths and values while they are read."""

    def __init__(self, documents: Iterable[Document], with_values: bool) -> None:
        self.lengths = array("q")
        self.values: list[Any] = []
        self._documents = documents
        self._with_values = with_values

    def __iter__(self) -> Iterator[tuple[str, str, str | None]]:
        for number, (text, value, scope) in enumerate(self._documents):
            self.lengths.append(0 if text is None else len(text))
            if self._with_values:
                self.values.append(value)
            if text is not None:
                yield key_of(number), text, scope
