"""Finds the documents to remove so that one document of each cluster stays, in memory.

A document that matches a given corpus is always removed.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count, groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.base.numba_compiler import BoolArray, Int64Array
from textsim_db.cluster import linkages
from textsim_db.cluster.join import Join
from textsim_db.cluster.keep_rule import Preference
from textsim_db.cluster.loaded_documents import LoadedDocuments
from textsim_db.cluster.pair_groups import JudgedPairs, judged_groups
from textsim_db.cluster.spanning_forest import Ids, Links, joined_links
from textsim_db.compare.match_rule import Criterion, form_hash
from textsim_db.dedupe.loaded_texts import LoadedTexts, key_of
from textsim_db.dedupe.removal_summary import (
    AnyDocument,
    Likeness,
    Removal,
    RemovalSummary,
    StoredDocument,
    similar_scopes,
    summarize,
)
from textsim_db.measures.by_name import JACCARD
from textsim_db.results import AddReport
from textsim_db.settings.corpus_settings import CorpusConfig
from textsim_db.settings.named_values import Linkage, check_linkage

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.dedupe.against_corpora import JudgedDocuments, JudgedKeys


class Rule(NamedTuple):
    """Decides which documents are near-duplicates, and which document of a cluster stays."""

    preference: Preference
    """Decides which document of a cluster stays."""
    config: CorpusConfig
    """Decides which documents are near-duplicates."""
    linkage: str = Linkage.KEPT
    """Decides which documents make a cluster."""
    keep_up_to: int = 1
    """How many documents of a cluster stay: the kept one, and those that are least similar to it."""

    def against(self, corpora: Sequence[Corpus]) -> Rule:
        """Return this rule with the settings of the first corpus, if there is one.

        Raises ConfigurationError if only the documents, or only a corpus, have scopes.
        """
        for corpus in corpora:
            corpus.config.check_scope(corpus.name, self.config.scoped)
        if not corpora:
            return self
        config = replace(corpora[0].config, is_unique=False, unique_from=None, keep_for=None)
        return self._replace(config=config)


StandingText = tuple[StoredDocument, str, str | None]
"""A document of a file that stands: its name, its text, and its scope if the settings know scopes."""


class Document(NamedTuple):
    """A document to compare with all others, or with the others of its scope."""

    text: str | None
    """None if it cannot be compared."""
    value: Any = None
    """The value of the preference's column."""
    scope: str | None = None
    """None if the settings know no scopes."""
    key: str | None = None
    """The key by which judgements name it."""


@dataclass(frozen=True, slots=True)
class Deduplication:
    """The result: the documents to remove, and the refused documents."""

    documents: int
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
    similar_scopes: list[tuple[str, ...]] = field(default_factory=list)
    """The scopes that differ only in case, spaces or encoding, in groups."""
    stale_judgements: int = 0
    """The judgements that were not obeyed, because a text has changed since."""
    recounted: list[int] = field(default_factory=list)
    """The documents whose keys the sizes of clusters before this run count."""
    standing_forms: dict[StoredDocument, str] = field(default_factory=dict)
    """The normal forms of the documents of files that stand in the way."""
    refused_standing: list[tuple[StoredDocument, str]] = field(default_factory=list)
    """The documents of these files that cannot be compared, with the reason."""

    def mask(self) -> npt.NDArray[np.bool_]:
        """Return which documents stay: bool of shape (documents,)."""
        stays = np.ones(self.documents, np.bool_)
        stays[[removal.number for removal in self.removals]] = False
        return stays

    def count_stored(self) -> int:
        """Return how many documents are removed because of a document of a corpus."""
        return sum(isinstance(removal.kept, StoredDocument) for removal in self.removals)

    def links(self) -> list[Removal]:
        """Return the documents that are in a cluster, and not the first one that it keeps."""
        return [*self.removals, *self.also_kept]

    def cluster_sizes(self) -> dict[AnyDocument, int]:
        """Return the size of each cluster by its kept document; those of corpora come last."""
        recounted = set(self.recounted)
        joined: Counter[AnyDocument] = Counter()
        for number, kept, _ in self.links():
            joined[kept] += number not in recounted
        order = sorted(joined, key=lambda kept: (isinstance(kept, StoredDocument), kept))
        return {kept: joined[kept] + self.sizes.get(kept, 1) for kept in order}

    def annotations(self, keys: Sequence[str | None], of_one: bool = False) -> dict[str, list[Any]]:
        """Return the values of each document by the names of ANNOTATION; None for a missing one.

        keys: of each document; without one, its number from 1 on names it. of_one: whether a document
        alone has a cluster.
        """
        cluster: list[int | None] = [None] * self.documents
        size = [1] * self.documents
        similarity: list[float | None] = [None] * self.documents
        kept_key: list[str | None] = [None] * self.documents
        sizes = self.cluster_sizes()
        names = {kept: place for place, kept in enumerate(sizes, start=1)}
        for number, kept, value in self.links():
            cluster[number], size[number], similarity[number] = names[kept], sizes[kept], value
            if isinstance(kept, int):
                cluster[kept], size[kept] = names[kept], sizes[kept]
                kept_key[number] = kept_key[kept] = keys[kept] or str(kept + 1)
            else:
                kept_key[number] = kept.key
        if of_one:
            numbers = count(len(names) + 1)
            cluster = [next(numbers) if each is None else each for each in cluster]
        values = (cluster, size, self.mask().tolist(), similarity, kept_key)
        return dict(zip(ANNOTATION, values, strict=True))


ANNOTATION: dict[str, Any] = dict(cluster=1, size=1, kept=True, similarity=1.0, kept_key="1")  # noqa: C408
"""The fields of an annotated document, with an example of each value.

cluster: the number of its cluster, from 1 on in the order of the kept documents; None for a document
alone. size: the documents of its cluster, with those that earlier runs added or removed; 1 without one.
kept: whether it stays. similarity: to the kept document of its cluster, which a corpus may have.
kept_key: the key of that document.
"""


def deduplicate(
    documents: Iterable[Document],
    rule: Rule,
    progress: Callable[[AddReport], None] | None = None,
    against: Sequence[Corpus] = (),
    judgements: Sequence[JudgedKeys] = (),
    memory: int | None = None,
    texts_of: Callable[[Collection[int]], Mapping[int, str]] = lambda numbers: {},
    standing: Iterable[StandingText] = (),
) -> Deduplication:
    """Find the documents to remove; documents are numbered from 0.

    progress is called as by Corpus.add_many. against: corpora whose documents stand, before all others;
    a document that matches one of them is removed. Their judgements are obeyed, after these.
    standing: documents of files that stand, in place of corpora and judgements.
    memory: as for LoadedTexts. texts_of: reads some documents again, for the summary. Raises
    ConfigurationError if two values cannot be compared.
    """
    verdicts: list[JudgedKeys] = []
    if judgements or against:  # the import takes a fifth of a second
        from textsim_db.dedupe import against_corpora

        verdicts = against_corpora.judgements_to_obey(judgements, against)
    judged_keys = {key for judgement in verdicts for key in judgement[:2]}
    numbered = _Numbered(documents, rule.preference.column is not None, judged_keys)
    stored = against_corpora.StoredMatches(numbered, against, numbered.judged) if against else None
    loaded = LoadedTexts(rule.config, for_merges=True, memory=memory)
    names: list[StoredDocument] = []
    refused = loaded.read(
        chain(stored or numbered, _numbered_after(numbered, standing, names)), progress
    )
    lengths = np.frombuffer(numbered.lengths, np.int64)
    numbers = loaded.numbers()[: np.searchsorted(loaded.numbers(), len(lengths))]
    host, forms_of_standing = loaded.host(), dict[StoredDocument, str]()
    best, of_judged = (stored.best, stored.of_judged) if stored else ({}, {})
    if names:
        best, forms_of_standing = _best_standing(loaded, host, rule, len(lengths), names)
        host = host.only(np.arange(len(numbers)))
    ranks = rule.preference.ranks(lengths, numbered.values)[numbers]
    judged, stale = None, 0
    if numbered.judged:
        ids, of_records = _judge(numbered, loaded, verdicts, against)
        best |= of_records.choose({number: of_judged.get(number, []) for number in ids})
        judged = of_records.among({n: id_ for n, id_ in ids.items() if n not in best})
        stale = of_records.stale
    is_stored = np.isin(numbers, [*best])
    removed, kept, similarity = _removals(host, rule, ranks, judged, is_stored)
    ends = numbers[removed].tolist(), numbers[kept].tolist(), similarity.tolist()
    links = {number: Removal(number, *rest) for number, *rest in zip(*ends, strict=True)}
    for number, match in best.items():  # of equally similar documents the stored one
        links[number] = max(match, links.get(number, match), key=lambda removal: removal.similarity)
    removals, also_kept = _without_most_different([*links.values()], rule.keep_up_to - 1, best)

    def forms_of(documents: Collection[AnyDocument]) -> dict[AnyDocument, str]:
        places = sorted(each for each in documents if isinstance(each, int))
        stored = {each for each in documents if isinstance(each, StoredDocument)}
        of_corpora = {
            each: against_corpora.form_in(against, each)
            for each in stored - forms_of_standing.keys()
        }
        return loaded.forms(places) | of_corpora | forms_of_standing

    before = against_corpora.stored_sizes(against, removals) if against else None
    return Deduplication(
        len(lengths),
        removals,
        [each for each in refused if each[0] < len(lengths)],
        loaded.count_without_words(len(numbers)),
        before.sizes if before else {},
        summarize(removals, _likeness(removals, loaded, numbered), forms_of, texts_of),
        also_kept,
        similar_scopes(numbered.scopes),
        stale,
        before.recounted([*removals, *also_kept], numbered.keys) if before else [],
        forms_of_standing,
        [(names[n - len(lengths)], reason) for n, reason in refused if n >= len(lengths)],
    )


def _numbered_after(
    numbered: _Numbered, standing: Iterable[StandingText], names: list[StoredDocument]
) -> Iterator[tuple[str, str, str | None]]:
    """Yield the documents that stand under the numbers after all others, and note their names."""
    for name, text, scope in standing:
        names.append(name)
        yield key_of(len(numbered.lengths) + len(names) - 1), text, scope


def _best_standing(
    loaded: LoadedTexts,
    host: LoadedDocuments,
    rule: Rule,
    first: int,
    names: Sequence[StoredDocument],
) -> tuple[dict[int, Removal], dict[StoredDocument, str]]:
    """Return the best match of documents among those that stand, and the normal forms of these.

    first: the number of the first one that stands.
    """
    join = Join(host, Criterion(JACCARD, rule.config.threshold, for_merges=True))
    numbers = loaded.numbers()
    others, settled = np.split(np.arange(len(numbers)), np.searchsorted(numbers, [first]))
    links = linkages.best_settled(join, settled, others)
    ends = numbers[links.left].tolist(), numbers[links.right].tolist(), links.similarity.tolist()
    best = {n: Removal(n, names[kept - first], value) for n, kept, value in zip(*ends, strict=True)}
    forms = loaded.forms(sorted({*ends[1]}))
    return best, {names[number - first]: form for number, form in forms.items()}


def _likeness(
    removals: list[Removal], loaded: LoadedTexts, numbered: _Numbered
) -> dict[int, Likeness]:
    """Return how alike the texts of each removed document and of its kept document are."""
    likeness = {removal.number: Likeness.OTHER_WORDS for removal in removals}
    pairs = [removal[:2] for removal in removals if isinstance(removal.kept, int)]
    removed, kept = np.array(pairs, np.int64).reshape(-1, 2).T
    hashes = np.frombuffer(numbered.hashes, np.int64)
    have_same_words = loaded.text_numbers(removed) == loaded.text_numbers(kept)
    are_copies = hashes[removed] == hashes[kept]
    for number, is_copy in zip(removed[have_same_words], are_copies[have_same_words], strict=True):
        likeness[int(number)] = Likeness.COPY if is_copy else Likeness.SAME_WORDS
    return likeness


def _judge(
    numbered: _Numbered, loaded: LoadedTexts, verdicts: list[JudgedKeys], against: Sequence[Corpus]
) -> tuple[dict[int, int], JudgedDocuments]:
    """Return the ids of the judged documents, by their numbers, and what judgements say of them."""
    from textsim_db.dedupe.against_corpora import (
        JudgedDocument,
        JudgedDocuments,
        documents_with_keys,
    )

    numbers, parts = loaded.numbers(), loaded.parts()
    judged = np.array(sorted(numbered.judged), np.int64)
    judged = judged[np.isin(judged, numbers)]
    ids = dict(zip(judged.tolist(), np.searchsorted(numbers, judged).tolist(), strict=True))
    known = documents_with_keys(against, {key for each in verdicts for key in each[:2]})
    for number, form in loaded.forms(judged.tolist()).items():
        key, part = numbered.judged[number], None if parts is None else int(parts[ids[number]])
        document = JudgedDocument(key, number, part, form_hash(form))
        known.setdefault(key, []).append(document)
    return ids, JudgedDocuments(verdicts, known)


def _without_most_different(
    removals: list[Removal], count: int, with_match: Collection[int]
) -> tuple[list[Removal], list[Removal]]:
    """Return the removals without some of each cluster, those least similar to the kept one, and these.

    Of equally similar documents the first is taken. with_match: the documents that match a corpus, which
    do not stay.
    """
    if count == 0:
        return removals, []
    choosable = (each for each in removals if each.number not in with_match)
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
    is_stored: BoolArray,
) -> Links:
    """Return the documents to remove, left, with the documents that are kept instead, right.

    is_stored: whether a corpus has a match. With linkage "kept" such a document may be more similar to
    another one.
    """
    criterion = Criterion(JACCARD, rule.config.threshold, for_merges=True)

    def ranked(ids: Ids) -> Ids:
        order: Ids = ids[np.argsort(ranks[ids])]
        return order

    def only(ids: Ids) -> Join:
        return Join(host.only(ids), criterion)

    linkage = check_linkage(rule.linkage)
    join = Join(host, criterion, is_stored)
    if is_stored.any() and not (judged is None and linkage is Linkage.KEPT):
        join = only(np.flatnonzero(~is_stored))
    if judged is None:
        return joined_links(linkages.removals(join, linkage, ranked))
    groups = judged_groups(join, only, judged, linkage, ranked, np.sort)
    return joined_links(linkages.all_but_first(join, groups, ranked))


class _Numbered:
    """Documents with their numbers as keys; records lengths and values while they are read."""

    def __init__(
        self, documents: Iterable[Document], with_values: bool, judged_keys: Collection[str]
    ) -> None:
        self.lengths = array("q")
        self.hashes = array("q")
        """The hash of each text in this process."""
        self.values: list[Any] = []
        self.scopes: set[str] = set()
        self.keys: list[str | None] = []
        """The keys of all documents, with the texts and values."""
        self.judged: dict[int, str] = {}
        """The keys of the documents that judgements name."""
        self._judged_keys = judged_keys
        self._documents = documents
        self._with_values = with_values

    def __iter__(self) -> Iterator[tuple[str, str, str | None]]:
        for number, (text, value, scope, key) in enumerate(self._documents):
            if key is not None and key in self._judged_keys:
                self.judged[number] = key
            self.keys.append(key)
            self.lengths.append(0 if text is None else len(text))
            self.hashes.append(hash(text))
            if self._with_values:
                self.values.append(value)
            if isinstance(scope, str):
                self.scopes.add(scope)
            if text is not None:
                yield key_of(number), text, scope
