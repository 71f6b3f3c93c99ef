"""Inspects clusters: their weakest members, and templates that other documents share.

A few members of each cluster are compared with each other. The shingles that most of them have are
looked up in a sample of the corpus.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np

from textsim_db.cluster.linkages import Group
from textsim_db.db.binary_format import Array
from textsim_db.db.engine import Connection
from textsim_db.db.store import Store
from textsim_db.errors import ConfigurationError
from textsim_db.read import statements
from textsim_db.read.boilerplate import SampledDocuments, read_sample, sample_of_rows
from textsim_db.read.snapshot import fetch, snapshot
from textsim_db.results import Inspection
from textsim_db.text.array_types import Int64Array
from textsim_db.text.shingles import find_shingles

MOST_COMPARED = 50
"""The members of a cluster that are compared with each other; of more, evenly chosen ones are."""
FEWEST_OUTSIDE = 5
"""The documents outside a cluster that must share a shingle, so that it counts as a template.

Fewer may be documents that quote the cluster."""
CLUSTERS_AT_ONCE = 200


class ComparedMember(NamedTuple):
    """A member that is compared: its key, and its shingles with their values."""

    key: str
    shingles: dict[str, int]


class ShingleIndex(NamedTuple):
    """The shingles of a sample of the corpus, sorted by their values, and the ids of their documents."""

    values: Int64Array
    ids: Int64Array
    documents: int

    def owners(self, values: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return the documents that have these values, and the place of the value of each."""
        starts = np.searchsorted(self.values, values, "left")
        counts = np.searchsorted(self.values, values, "right") - starts
        places = np.repeat(np.arange(len(values)), counts)
        offsets = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.ids[starts[places] + offsets], places


def inspect(
    connection: Connection, store: Store, groups: list[Group], threshold: float
) -> Iterator[Inspection]:
    """Yield a report of each cluster, in order."""
    index = _index(store, read_sample(store))
    for start in range(0, len(groups), CLUSTERS_AT_ONCE):
        batch = groups[start : start + CLUSTERS_AT_ONCE]
        chosen = [_chosen(group.ids) for group in batch]
        members = _members(connection, store, np.concatenate(chosen))
        for group, ids in zip(batch, chosen, strict=True):
            compared = sorted((members[id_] for id_ in ids.tolist()), key=lambda member: member.key)
            yield _report(group, compared, index, threshold)


def inspect_keys(store: Store, clusters: list[list[str]], threshold: float) -> list[Inspection]:
    """Return what holds clusters together, given by the keys of their members."""
    with snapshot(store.engine) as connection:
        groups = []
        for keys in clusters:
            rows = fetch(connection, store.corpus, statements.IDS_OF_MEMBERS, [keys])
            ids = [id_ for (id_,) in rows]
            if not ids:
                raise ConfigurationError("a cluster has no document of the corpus")
            groups.append(Group(np.array(ids, np.int64), threshold))
        return list(inspect(connection, store, groups, threshold))


def _chosen(ids: Int64Array) -> Int64Array:
    """Return at most MOST_COMPARED members, at equal distances."""
    places = np.linspace(0, len(ids) - 1, min(len(ids), MOST_COMPARED)).astype(np.int64)
    return np.sort(ids)[places]


def _index(store: Store, sample: SampledDocuments) -> ShingleIndex:
    shingles = find_shingles(sample.tokens, store.corpus.config.shingle)
    values = shingles.hashes.view(np.int64)
    order = np.argsort(values, kind="stable")
    ids = np.repeat(sample.ids, np.diff(shingles.offsets))
    return ShingleIndex(values[order], ids[order], len(sample.ids))


def _members(connection: Connection, store: Store, ids: Int64Array) -> dict[int, ComparedMember]:
    parameters = [Array(ids.astype(np.int32))]
    rows = fetch(connection, store.corpus, statements.MEMBERS_TO_COMPARE, parameters)
    sample = sample_of_rows(store, len(rows), rows)
    shingles = find_shingles(sample.tokens, store.corpus.config.shingle)
    texts, values = shingles.texts(sample.tokens), shingles.hashes.view(np.int64).tolist()
    bounds = shingles.offsets.tolist()
    members = {}
    for number, (id_, key) in enumerate(zip(sample.ids.tolist(), sample.keys, strict=True)):
        part = slice(bounds[number], bounds[number + 1])
        members[id_] = ComparedMember(key, dict(zip(texts[part], values[part], strict=True)))
    return members


def _report(
    group: Group, compared: list[ComparedMember], index: ShingleIndex, threshold: float
) -> Inspection:
    least, best = _similarities([set(member.shingles) for member in compared])
    template = _template(group, compared, index)
    _, best_without = _similarities([set(member.shingles) - template for member in compared])
    return Inspection(
        weakest_member=compared[best.index(min(best))].key,
        least=least,
        is_exact=len(compared) == len(group.ids),
        template=tuple(text for text in compared[0].shingles if text in template),
        held_by_template=bool(template) and float(np.median(best_without)) < threshold,
    )


def _similarities(members: list[set[str]]) -> tuple[float, list[float]]:
    """Return the least similarity of two members, and that of each member to its most similar one."""
    least, best = 1.0, [0.0] * len(members)
    for (i, a), (j, b) in combinations(enumerate(members), 2):
        shared = len(a & b)
        similarity = shared / (len(a) + len(b) - shared) if a or b else 1.0
        least = min(least, similarity)
        best[i], best[j] = max(best[i], similarity), max(best[j], similarity)
    return least, best


def _template(group: Group, compared: list[ComparedMember], index: ShingleIndex) -> set[str]:
    """Return the shingles of most members that are also outside, or in most documents of the corpus."""
    counts = Counter(text for member in compared for text in member.shingles)
    values = {text: value for member in compared for text, value in member.shingles.items()}
    frequent = [text for text, count in counts.items() if 2 * count > len(compared)]
    owners, places = index.owners(np.array([values[text] for text in frequent], np.int64))
    everywhere = np.bincount(places, minlength=len(frequent))
    outside = np.bincount(places[~np.isin(owners, group.ids)], minlength=len(frequent))
    is_everywhere = (2 * everywhere > index.documents) & (everywhere > MOST_COMPARED)
    is_template = (outside >= FEWEST_OUTSIDE) | is_everywhere
    return {frequent[place] for place in np.flatnonzero(is_template).tolist()}
