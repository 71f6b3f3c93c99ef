"""The corpora against which documents are deduplicated: matches, judgements and sizes of clusters.

The judgements that a run obeys are those of the corpora, and those that come with its records. A key
names the records that have it, and the documents of corpora that have it. A key without a document may
still connect others, as in textsim._judged_groups.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, NamedTuple

from textsim_db.base.run_ahead import cut
from textsim_db.cluster.pair_groups import JudgedPairs, groups_judged_same
from textsim_db.compare.match_rule import Criterion, is_stale
from textsim_db.db.engine import transaction
from textsim_db.db.store import Store
from textsim_db.dedupe.removal_summary import AnyDocument, Removal, StoredDocument
from textsim_db.errors import ConfigurationError, DocumentError, DocumentNotFound
from textsim_db.measures.by_name import JACCARD
from textsim_db.read import search, statements
from textsim_db.results import Match
from textsim_db.settings.named_values import Verdict
from textsim_db.text.hashing import part_of_scope
from textsim_db.write import write_batch
from textsim_db.write.judge_pairs import TextHashes

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
        for key, size, hashes in corpus._current.call(Store.read, statements.CLUSTER_SIZES, [keys]):
            result.sizes[StoredDocument(corpus.name, key)] = size
            result.counted[StoredDocument(corpus.name, key)] = set(hashes)
    return result


def _read_judged(store: Store, keys: list[str]) -> list[tuple[Any, ...]]:
    return store.read(statements.JUDGED_DOCUMENTS, [store.corpus.origin, keys])


def store_sizes(
    corpus: Corpus,
    cluster_sizes: Mapping[AnyDocument, int],
    links: Iterable[Removal],
    keys: Sequence[str | None],
) -> None:
    """Store the sizes of the clusters whose kept documents the corpus has now.

    links: the other documents of these clusters.
    keys: the key of each document in the corpus, or None.
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


class JudgedKeys(NamedTuple):
    a: str
    b: str
    verdict: str
    place: str | None = None
    """The file and the line of the judgement, for messages; None in a corpus."""
    hashes: TextHashes = (None, None)
    """Those of the texts that were judged."""


def judgements_to_obey(given: Sequence[JudgedKeys], corpora: Sequence[Corpus]) -> list[JudgedKeys]:
    """Return the verdicts that decide; of several on one pair, the given one or the first one does.

    Normal forms are those of the first corpus. If those of another one lack other words, its stale
    judgements are left out, and the others hold for any text.
    """
    of_pairs: dict[frozenset[str], JudgedKeys] = {}
    for judgement in given:
        if judgement.a == judgement.b:
            raise ConfigurationError(f"{judgement.place}: the pair has the same record twice")
        of_pairs[frozenset(judgement[:2])] = judgement
    for corpus in corpora:
        has_equal_forms = _left_out(corpus) == _left_out(corpora[0])
        for stored in corpus.judgements():
            judged = JudgedKeys(*stored[:3])
            if has_equal_forms:
                judged = judged._replace(hashes=(stored.hash_a, stored.hash_b))
            if has_equal_forms or not stored.is_stale:
                of_pairs.setdefault(frozenset(stored[:2]), judged)
    return [each for each in of_pairs.values() if each.verdict != Verdict.UNSURE]


def _left_out(corpus: Corpus) -> tuple[object, ...]:
    """Return what decides which words a corpus leaves out."""
    config = corpus.config
    return config.stop_words, config.stop_words_by_language, config.language, config.boilerplate


class JudgedDocument(NamedTuple):
    """A document that a judgement names."""

    key: str
    document: AnyDocument | None
    """None if no document has the key."""
    part: int | None
    hash: str | None
    """That of its normal form."""


class JudgedDocuments:
    def __init__(
        self, judgements: Iterable[JudgedKeys], documents: Mapping[str, Sequence[JudgedDocument]]
    ) -> None:
        """documents: those with each key. Raises ConfigurationError for records of two scopes."""
        self._documents: list[JudgedDocument] = []
        places: dict[str, range] = {}
        same: list[tuple[int, int]] = []
        different: list[tuple[int, int]] = []
        self.stale = 0
        """The judgements of texts that have changed since."""
        for judgement in judgements:
            for key in judgement[:2]:
                if key not in places:
                    start = len(self._documents)
                    self._documents += documents.get(key, [JudgedDocument(key, None, None, None)])
                    places[key] = range(start, len(self._documents))
            pairs = [*product(places[judgement.a], places[judgement.b])]
            holding = [pair for pair in pairs if not self._is_stale(judgement, pair)]
            changed = self._with_records(pairs)
            self.stale += bool(changed) and not self._with_records(holding)
            of_verdict = same if judgement.verdict == Verdict.SAME else different
            of_verdict += [pair for pair in holding if self._may_meet(*pair, judgement.place)]
        groups = groups_judged_same(same, different)
        joined = [pair for group in groups for pair in combinations(group, 2)]
        self._groups = [[self._documents[i] for i in group] for group in groups]
        self._pairs = joined, different
        self._apart = JudgedPairs.of(joined, different).apart()

    def _with_records(self, pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        return [p for p in pairs if any(isinstance(self._documents[i].document, int) for i in p)]

    def _is_stale(self, judgement: JudgedKeys, pair: tuple[int, int]) -> bool:
        return is_stale(judgement.hashes, [self._documents[i].hash for i in pair])

    def _may_meet(self, a: int, b: int, place: str | None) -> bool:
        one, other = self._documents[a], self._documents[b]
        if one.document is None or other.document is None or one.part == other.part:
            return True
        if place is not None and isinstance(one.document, int) and isinstance(other.document, int):
            raise ConfigurationError(f"{place}: the records of the pair have different scopes")
        return False

    def choose(self, matches: Mapping[int, Sequence[Removal]]) -> dict[int, Removal]:
        """Return the stored documents in whose favour judged records are removed.

        matches: those of each judged record, best first. A record that was judged the same as a stored
        document goes to it. A record that was judged the same as a record with a match goes with it.
        """
        numbers = {each.document: number for number, each in enumerate(self._documents)}
        chosen: dict[int, Removal] = {}
        for record, removals in matches.items():
            apart = self._apart.get(numbers[record], ())
            for removal in removals:
                if numbers.get(removal.kept) not in apart:
                    chosen.setdefault(record, removal)
        for group in self._groups:
            stored = [each for each in group if not isinstance(each.document, int | None)]
            followed = [
                each._replace(document=chosen[each.document].kept)
                for each in group
                if isinstance(each.document, int) and each.document in chosen
            ]
            chosen |= {to.number: to for to in _to_stored(group, stored or followed)}
        return chosen

    def among(self, ids: Mapping[int, int]) -> JudgedPairs | None:
        """Return the judged pairs of these records, by their ids; None without any."""
        id_of = {
            number: ids[each.document]
            for number, each in enumerate(self._documents)
            if isinstance(each.document, int) and each.document in ids
        }
        same, different = (
            [(id_of[a], id_of[b]) for a, b in pairs if a in id_of and b in id_of]
            for pairs in self._pairs
        )
        return JudgedPairs.of(same, different) if same or different else None


def _to_stored(group: list[JudgedDocument], stored: list[JudgedDocument]) -> Iterator[Removal]:
    """Yield for each record of a group that was judged the same the document to which it goes.

    That has another key: the document with the key of a record is an earlier state of the record.
    """
    for key, document, part, _ in group:
        others = (each for each in stored if each.key != key and each.part == part)
        if isinstance(document, int) and (first := next(others, None)) is not None:
            assert first.document is not None
            yield Removal(document, first.document, 1.0)
