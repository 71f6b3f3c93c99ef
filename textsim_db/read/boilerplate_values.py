"""The shingles that most documents of a corpus share, found in a sample of bounded size."""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import Int64Array
from textsim_db.cluster import linkages
from textsim_db.cluster.join import Join
from textsim_db.compare.match_rule import Criterion
from textsim_db.db.binary_format import array
from textsim_db.db.dictionary import dictionary_of
from textsim_db.db.store import Store
from textsim_db.read import statistics_statements as statements
from textsim_db.read.check_catalog import tracked_threshold
from textsim_db.read.list_pairs import StoredHost
from textsim_db.read.snapshot import snapshot
from textsim_db.read.stored_documents import normal_forms
from textsim_db.results import Boilerplate
from textsim_db.results.reports import SharedShingle
from textsim_db.settings.named_values import Linkage
from textsim_db.sketch.learned_shingles import SAMPLE_DOCUMENTS, first_copies
from textsim_db.text.shingles import find_shingles
from textsim_db.text.tokens import tokens_of
from textsim_db.text.utf8 import Tokens

SAMPLE_BYTES = 256 * 1024 * 1024
"""The size of the stored documents of a sample, unless a single page has more."""
EXAMPLES = 3
"""The keys that are shown with a shingle."""


class SampledDocuments(NamedTuple):
    """Some of the documents of a corpus; the same documents if the corpus did not change."""

    documents: int
    """The number of documents of the corpus."""
    ids: Int64Array
    keys: list[str]
    tokens: Tokens


class Owned(NamedTuple):
    """The values of the distinct shingles of documents, and the numbers of these documents."""

    values: Int64Array
    owners: Int64Array


def read_sample(store: Store) -> SampledDocuments:
    ((count, size),) = store.read(statements.SIZE_OF_CORPUS)
    share = min(1.0, SAMPLE_DOCUMENTS / max(count, 1), SAMPLE_BYTES / max(size, 1))
    rows = store.read(statements.SAMPLE_OF_WORDS, [100 * share], binary=True)
    return sample_of_rows(store, count, rows)


def sample_of_rows(store: Store, count: int, rows: list[Any]) -> SampledDocuments:
    forms = normal_forms([row[2] for row in rows], [row[3] for row in rows], dictionary_of(store))
    tokens = tokens_of([form.encode() for form in forms])
    ids = np.array([row[0] for row in rows], np.int64)
    return SampledDocuments(count, ids, [row[1] for row in rows], tokens)


def boilerplate(
    store: Store, share: float, limit: int | None, criterion: Criterion | None
) -> Boilerplate:
    """Return the shingles that more than a share of the documents has; copies count once."""
    sample = read_sample(store)
    shingles = find_shingles(sample.tokens, store.corpus.config.shingle)
    owners = np.repeat(np.arange(sample.tokens.documents), np.diff(shingles.offsets))
    firsts = first_copies(sample.tokens)
    counted = np.flatnonzero(np.isin(owners, firsts))
    hashes = shingles.hashes.view(np.int64)
    values, places, counts = np.unique(hashes[counted], return_index=True, return_counts=True)
    shared = np.flatnonzero((counts > share * len(firsts)) & (counts > 1))
    # The most frequent come first, and shingles with equal counts in the order of their text.
    shared = shared[np.lexsort((places[shared], -counts[shared]))][:limit]
    held = _clusters_held(store, sample, Owned(hashes, owners), values[shared], criterion)
    listed = []
    for number, place in enumerate(shared.tolist()):
        owned = counted[int(places[place])]
        text = shingles.text(owned)
        having = owners[hashes == values[place]]
        keys = tuple(sample.keys[i] for i in islice(having.tolist(), EXAMPLES))
        share = float(counts[place]) / len(firsts)
        listed.append(SharedShingle(text, share, keys, None if held is None else int(held[number])))
    return Boilerplate(sample.documents, len(sample.keys), len(firsts), listed)


def _clusters_held(
    store: Store,
    sample: SampledDocuments,
    owned: Owned,
    values: Int64Array,
    criterion: Criterion | None,
) -> Int64Array | None:
    """Return of each value the number of clusters in which most members of the sample have it."""
    labels = _labels(store, sample.ids, criterion)
    if labels is None:
        return None
    sizes = np.bincount(labels + 1)
    held = np.zeros(len(values), np.int64)
    for number, value in enumerate(values):
        having = np.bincount(labels[owned.owners[owned.values == value]] + 1, minlength=len(sizes))
        held[number] = np.count_nonzero((2 * having > sizes)[1:] & (sizes[1:] > 1))
    return held


def _labels(store: Store, ids: Int64Array, criterion: Criterion | None) -> Int64Array | None:
    """Return the cluster of each document, counted from 0, or -1; None without clusters."""
    places = {id_: place for place, id_ in enumerate(ids.tolist())}
    labels = np.full(len(ids), -1, np.int64)
    with snapshot(store.engine) as connection:
        if tracked_threshold(connection, store.corpus) is not None:
            statement = store.corpus.statement(statements.CLUSTERS_OF_IDS)
            numbers: dict[int, int] = {}
            for id_, cluster in connection.execute(statement, [array(ids.astype(np.int32))]):
                labels[places[id_]] = numbers.setdefault(cluster, len(numbers))
            return labels
        if criterion is None:
            return None
        host = StoredHost(connection, store, criterion._replace(for_merges=True))
        groups = linkages.groups(Join(host, criterion), Linkage.SINGLE, lambda group: group)
        for label, group in enumerate(groups):
            for id_ in group.ids.tolist():
                if id_ in places:
                    labels[places[id_]] = label
    return labels


def without_words(store: Store) -> tuple[int, list[str]]:
    ((count, keys),) = store.read(statements.WITHOUT_WORDS)
    return count, keys
