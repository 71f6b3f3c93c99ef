"""Clusters of the verified pairs of a corpus, documents to remove, and what holds a cluster together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import Int64Array
from textsim_db.cluster import linkages
from textsim_db.cluster.draw_subsets import draw_subsets
from textsim_db.cluster.join import Join
from textsim_db.cluster.linkages import Group, Ranked
from textsim_db.cluster.pair_groups import JudgedPairs, judged_groups
from textsim_db.cluster.spanning_forest import Ids
from textsim_db.compare.match_rule import Criterion
from textsim_db.db.binary_format import array
from textsim_db.db.engine import Connection
from textsim_db.db.store import Store
from textsim_db.errors import ConfigurationError
from textsim_db.files.arrow_frames import ResultColumns, columns_of
from textsim_db.measures.by_name import JACCARD
from textsim_db.read import statements
from textsim_db.read.boilerplate_values import SampledDocuments, read_sample, sample_of_rows
from textsim_db.read.list_pairs import StoredHost
from textsim_db.read.snapshot import fetch, snapshot
from textsim_db.results import Cluster, InspectedCluster, Split
from textsim_db.results.rows import Inspection
from textsim_db.settings.named_values import Linkage
from textsim_db.text.shingles import find_shingles

Rank = Callable[[str], Any]
"""Returns the rank of a key; the document with the lowest rank of a cluster is kept."""


class ClusterRules(NamedTuple):
    linkage: Linkage
    rank: Rank | None = None
    """Decides which document of a cluster is kept; None: the lowest key."""
    judgements: bool = False
    """Whether the judgements of the corpus are obeyed."""


def clusters(
    store: Store, criterion: Criterion, rules: ClusterRules
) -> Generator[ResultColumns, None, None]:
    with snapshot(store.engine) as connection:
        result = [cluster for cluster, _ in _find(connection, store, criterion, rules)]
    yield columns_of(Cluster, result)


def inspected(
    store: Store, criterion: Criterion, rules: ClusterRules, fewest: int
) -> list[InspectedCluster]:
    with snapshot(store.engine) as connection:
        clusters = _find(connection, store, criterion, rules)
        large = [(cluster, group) for cluster, group in clusters if len(cluster.keys) >= fewest]
        groups = [group for _, group in large]
        inspections = inspect(connection, store, groups, criterion.threshold)
        return [
            InspectedCluster(cluster, inspection)
            for (cluster, _), inspection in zip(large, inspections, strict=True)
        ]


def _find(
    connection: Connection, store: Store, criterion: Criterion, rules: ClusterRules
) -> list[tuple[Cluster[str], Group]]:
    criterion = criterion._replace(for_merges=True)
    corpus = StoredHost(connection, store, criterion)
    if rules.judgements:
        groups = list(_judged_groups(connection, store, corpus, criterion, rules))
    else:
        ranked = _ranking(corpus, rules.rank)
        groups = list(linkages.groups(Join(corpus, criterion), rules.linkage, ranked))
    keys = corpus.cache.keys(
        np.concatenate([np.empty(0, np.int64), *(group.ids for group in groups)])
    )
    result = [(group.with_keys(keys.__getitem__), group) for group in groups]
    result.sort(key=lambda each: (-len(each[0].keys), each[0].keys))
    return result


def duplicates(
    store: Store, criterion: Criterion, rules: ClusterRules
) -> Generator[ResultColumns, None, None]:
    """Yield columns: the documents to remove so that each cluster keeps one, with the kept documents."""
    criterion = criterion._replace(for_merges=True)
    with snapshot(store.engine) as connection:
        corpus = StoredHost(connection, store, criterion)
        join, ranked = Join(corpus, criterion), _ranking(corpus, rules.rank)
        if rules.judgements:
            groups = _judged_groups(connection, store, corpus, criterion, rules)
            removals = linkages.all_but_first(join, groups, ranked)
        else:
            removals = linkages.removals(join, rules.linkage, ranked)
        for links in removals:
            keys = corpus.cache.keys(np.unique(np.concatenate((links.left, links.right))))
            removed, kept, similarity = (column.tolist() for column in links)
            yield [keys[each] for each in removed], [keys[each] for each in kept], similarity


def split(
    store: Store,
    criterion: Criterion,
    shares: Mapping[str, float],
    random_seed: int,
    stratum_of: Callable[[str], Hashable],
) -> Split[str]:
    """Split the documents by the clusters of linkage "single", in the order of their keys."""
    criterion = criterion._replace(for_merges=True)
    limits = {"language": criterion.language, "part": criterion.part}
    with snapshot(store.engine) as connection:
        join = Join(StoredHost(connection, store, criterion), criterion)
        rows = fetch(connection, store.corpus, statements.DOCUMENTS_TO_SPLIT, limits)
        ids, keys = np.array([id_ for id_, _ in rows], np.int64), [key for _, key in rows]
        return draw_subsets(join, keys, [*map(stratum_of, keys)], shares, random_seed, ids)


def _judged_groups(
    connection: Connection,
    store: Store,
    corpus: StoredHost,
    criterion: Criterion,
    rules: ClusterRules,
) -> Iterator[Group]:
    def only(ids: Ids) -> Join:
        return Join(StoredHost(connection, store, criterion, ids), criterion)

    corpus_name, limits = store.corpus.name, (criterion.language, criterion.part)
    judged = JudgedPairs.of(
        fetch(connection, store.corpus, statements.SAME_PAIRS, [corpus_name, *limits]),
        fetch(connection, store.corpus, statements.DIFFERENT_PAIRS, [corpus_name]),
    )
    rankings = _ranking(corpus, rules.rank), _ranking(corpus, None)
    return judged_groups(Join(corpus, criterion), only, judged, rules.linkage, *rankings)


def _ranking(corpus: StoredHost, rank: Rank | None) -> Ranked:
    def ranked(ids: Ids) -> Ids:
        by_id = corpus.cache.keys(ids)
        keys = [by_id[id_] for id_ in ids.tolist()]
        places = keys if rank is None else [(rank(key), key) for key in keys]
        try:
            order = sorted(range(len(places)), key=places.__getitem__)
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"the ranks cannot be compared: {error}; expected values of one kind, such as numbers"
            ) from error
        return ids[np.array(order, np.int64)]

    return ranked


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
    index = _index(store, read_sample(store))
    for start in range(0, len(groups), CLUSTERS_AT_ONCE):
        batch = groups[start : start + CLUSTERS_AT_ONCE]
        chosen = [_chosen(group.ids) for group in batch]
        members = _members(connection, store, np.concatenate(chosen))
        for group, ids in zip(batch, chosen, strict=True):
            compared = sorted((members[id_] for id_ in ids.tolist()), key=lambda member: member.key)
            yield _report(group, compared, index, threshold)


def inspect_keys(store: Store, keys: list[str], threshold: float) -> Inspection:
    """Return what holds a cluster together that is given by the keys of its documents."""
    with snapshot(store.engine) as connection:
        rows = fetch(connection, store.corpus, statements.IDS_OF_KEYS, [keys])
        if not rows:
            raise ConfigurationError("the cluster has no document of the corpus")
        group = Group(np.array([id_ for (id_,) in rows], np.int64), threshold)
        return next(inspect(connection, store, [group], threshold))


def _chosen(ids: Int64Array) -> Int64Array:
    places = np.linspace(0, len(ids) - 1, min(len(ids), MOST_COMPARED)).astype(np.int64)
    return np.sort(ids)[places]


def _index(store: Store, sample: SampledDocuments) -> ShingleIndex:
    shingles = find_shingles(sample.tokens, store.corpus.config.shingle)
    values = shingles.hashes.view(np.int64)
    order = np.argsort(values, kind="stable")
    ids = np.repeat(sample.ids, np.diff(shingles.offsets))
    return ShingleIndex(values[order], ids[order], len(sample.ids))


def _members(connection: Connection, store: Store, ids: Int64Array) -> dict[int, ComparedMember]:
    parameters = [array(ids.astype(np.int32))]
    rows = fetch(connection, store.corpus, statements.MEMBERS_TO_COMPARE, parameters)
    sample = sample_of_rows(store, len(rows), rows)
    shingles = find_shingles(sample.tokens, store.corpus.config.shingle)
    texts, values = shingles.texts(), shingles.hashes.view(np.int64).tolist()
    bounds = shingles.offsets.tolist()
    members = {}
    for number, (id_, key) in enumerate(zip(sample.ids.tolist(), sample.keys, strict=True)):
        chosen = slice(bounds[number], bounds[number + 1])
        members[id_] = ComparedMember(key, dict(zip(texts[chosen], values[chosen], strict=True)))
    return members


def _report(
    group: Group, compared: list[ComparedMember], index: ShingleIndex, threshold: float
) -> Inspection:
    least, best = _similarities([set(member.shingles) for member in compared])
    template = _template(group, compared, index)
    _, best_without = _similarities([set(member.shingles) - template for member in compared])
    (is_held,) = (
        Criterion(JACCARD, threshold).accepted(np.array([np.median(best_without)])).tolist()
    )
    return Inspection(
        weakest_member=compared[best.index(min(best))].key,
        least=least,
        is_exact=len(compared) == len(group.ids),
        template=tuple(text for text in compared[0].shingles if text in template),
        held_by_template=bool(template) and not is_held,
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
