"""Verified pairs, clusters and duplicates among documents in memory, as a corpus would find them; pure.

A pair counts only if its documents share a bucket: a component of candidates has more pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

import numpy as np

from textsim_db.cluster import complete_linkage, large_buckets
from textsim_db.cluster.keep_representatives import Kept, keep_representatives
from textsim_db.cluster.spanning_forest import ComponentsOf, Forest, Ids, Links
from textsim_db.compare.jaccard import jaccard_pairs
from textsim_db.compare.packed_pairs import (
    ALL,
    BucketsOfDocuments,
    Members,
    left_of,
    offsets_of,
    pack,
    right_of,
)
from textsim_db.compare.pair_counts import Sizes, lists
from textsim_db.settings import CorpusConfig
from textsim_db.spark.loaded_documents import LoadedDocuments, take_rows
from textsim_db.text.array_types import FloatArray, Int64Array


class Verifier:
    """Verifies the candidates among the distinct texts of a partition."""

    def __init__(self, documents: LoadedDocuments, config: CorpusConfig) -> None:
        self.documents = documents
        self._config = config
        members = _members(documents)
        is_large = members.sizes > large_buckets.largest_listed(members.sizes, config.is_exact)
        self._small = members.take(~is_large)
        self._large = members.take(is_large)

    def links(self, components_of: ComponentsOf | None = None) -> Iterator[Links]:
        """Yield the verified pairs of texts.

        With components_of, crowds and large buckets yield only links between different components.
        """
        for listed in lists(self._small, ALL, self._sizes(), self._config.threshold):
            pairs = self._outside_large(listed.pairs)
            if components_of is None or not self._config.is_exact:
                yield from self._verified(pairs)
            else:
                yield from large_buckets.joining_pairs(pairs, self._verified, components_of)
        bounds = self._large.offsets.tolist()
        for number, (start, end) in enumerate(pairwise(bounds)):
            ids = self._large.ids[start:end].astype(np.int64)
            if components_of is None:
                yield from self._all_of_large(number, ids)
            else:
                yield from self._joining_of_large(ids, components_of)

    @cached_property
    def _in_large(self) -> BucketsOfDocuments:
        return BucketsOfDocuments(self._large)

    def _sizes(self) -> Sizes | None:
        counts = self.documents.rows.shingle_counts.astype(np.int32)
        return (
            Sizes(np.arange(len(counts), dtype=np.int32), counts) if self._config.is_exact else None
        )

    def _outside_large(self, pairs: Int64Array) -> Int64Array:
        if not len(self._large.ids):
            return pairs
        return pairs[self._in_large.least_shared(pairs) < 0]

    def _verified(self, pairs: Int64Array) -> Iterator[Links]:
        left, right = left_of(pairs), right_of(pairs)
        values = jaccard_pairs(self.documents.rows, left, right)
        accepted = values >= self._config.threshold
        yield Links(left[accepted], right[accepted], values[accepted])

    def _all_of_large(self, number: int, ids: Ids) -> Iterator[Links]:
        rows = take_rows(self.documents.rows, ids)
        for left, right, values in large_buckets.all_links(rows, self._config.threshold):
            pairs = pack(np.minimum(ids[left], ids[right]), np.maximum(ids[left], ids[right]))
            first = self._in_large.least_shared(pairs) == number
            yield Links(left_of(pairs[first]), right_of(pairs[first]), values[first])

    def _joining_of_large(self, ids: Ids, components_of: ComponentsOf) -> Iterator[Links]:
        components = components_of(ids)
        if (components == components[0]).all():
            return
        rows, threshold = take_rows(self.documents.rows, ids), self._config.threshold
        for left, right, values in large_buckets.joining_links(rows, components, threshold):
            yield Links(ids[left], ids[right], values)


def _members(documents: LoadedDocuments) -> Members:
    """Return the texts of each bucket that has several."""
    buckets = documents.buckets
    owners = buckets.owners()
    order = np.argsort(buckets.values, kind="stable")
    values, ids = buckets.values[order], owners[order]
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1])[: len(values)])
    members = Members(ids, offsets_of(np.diff(starts, append=len(values))))
    return members.take(members.sizes > 1)


def components(verifier: Verifier) -> tuple[Ids, Ids, FloatArray]:
    """Return the documents in clusters, the number of each one's cluster, and its weakest link."""
    documents = verifier.documents
    firsts = documents.firsts
    forest = Forest()
    copies = np.flatnonzero(np.arange(len(documents.forms)) != firsts[documents.forms])
    forest.add(Links(firsts[documents.forms[copies]], copies, np.ones(len(copies))))

    def labels(forms: Ids) -> Ids:
        return forest.labels(firsts[forms])

    for left, right, values in verifier.links(labels):
        forest.add(Links(firsts[left], firsts[right], values))
    return forest.components()


def complete_groups(verifier: Verifier) -> Iterator[tuple[Ids, float]]:
    """Yield the documents of each complete-linkage cluster, with its weakest link."""
    members = verifier.documents.members
    empty = Links(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    links = Links(*(np.concatenate(c) for c in zip(empty, *verifier.links(), strict=True)))
    unlinked = set(np.flatnonzero(members.sizes > 1).tolist())
    for forms, weakest in complete_linkage.complete(links):
        unlinked.difference_update(forms.tolist())
        yield np.sort(members.take(forms).values), weakest
    for form in sorted(unlinked):
        yield members.of(form), 1.0


def keep_by_rank(documents: LoadedDocuments, order: Ids, threshold: float) -> Kept:
    """Return which document is kept instead of each document; order: the documents, the best first.

    A copy of a kept text is removed in favour of it. Copies of a text that is not kept are compared,
    because a later document may be kept that is more similar.
    """
    forms = documents.forms[order]
    _, firsts = np.unique(forms, return_index=True)
    is_first = np.zeros(len(order), np.bool_)
    is_first[firsts] = True
    chosen = np.flatnonzero(is_first)
    kept = _keep(documents, forms[chosen], threshold)
    is_kept_form = np.zeros(len(documents.members.sizes), np.bool_)
    is_kept_form[forms[chosen]] = kept.kept_by == np.arange(len(chosen))
    if not is_kept_form.all():
        chosen = np.flatnonzero(is_first | ~is_kept_form[forms])
        kept = _keep(documents, forms[chosen], threshold)
    first_of_form = np.empty(len(documents.members.sizes), np.int64)
    first_of_form[forms[firsts]] = firsts
    kept_by, similarity = order[first_of_form[documents.forms]], np.ones(len(order))
    kept_by[order[chosen]] = order[chosen[kept.kept_by]]
    similarity[order[chosen]] = kept.similarity
    return Kept(kept_by, similarity)


def _keep(documents: LoadedDocuments, forms: Ids, threshold: float) -> Kept:
    rows, buckets = take_rows(documents.rows, forms), documents.buckets.take(forms)
    return keep_representatives(rows, buckets, 0, threshold)
