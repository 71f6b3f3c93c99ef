"""The judgements that a deduplication obeys: of its records, and of the documents of corpora.

A key names the records that have it, and the documents of corpora that have it. A key without a
document may still connect others, as in textsim._judged_groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import TYPE_CHECKING, NamedTuple

from textsim_db.cluster.pair_groups import JudgedPairs, groups_judged_same
from textsim_db.compare.match_rule import is_stale
from textsim_db.dedupe.removal_summary import AnyDocument, Removal
from textsim_db.errors import ConfigurationError
from textsim_db.settings.named_values import Verdict
from textsim_db.write.judge_pairs import TextHashes

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus


class JudgedKeys(NamedTuple):
    """A judgement of two documents."""

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
    """The judgements of documents."""

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
