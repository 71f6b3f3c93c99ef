"""The integrity of a tracked corpus: its matches and clusters are those of its documents.

Nodes and matches are computed here, by the engine of pairs(). Differences are verified by the functions
of SQL that have stored them, which leave out the documents that the log names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import pairwise
from shlex import quote
from typing import Any, NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import BoolArray, FloatArray, Int32Array, Int64Array
from textsim_db.cluster.join import Join
from textsim_db.cluster.spanning_forest import FewLinks, Links
from textsim_db.compare.match_rule import Criterion
from textsim_db.compare.packed_pairs import is_among, left_of, pack, right_of
from textsim_db.db.binary_format import load_float8_array, load_int4_array
from textsim_db.db.engine import Connection
from textsim_db.db.store import Store
from textsim_db.measures.by_name import JACCARD
from textsim_db.read import integrity_statements
from textsim_db.read.list_pairs import StoredHost
from textsim_db.read.snapshot import fetch_arrays
from textsim_db.results import Problem
from textsim_db.settings.named_values import Shingle
from textsim_db.text.shingles import find_shingles
from textsim_db.text.utf8 import Tokens

NODES_AT_ONCE = 1000
"""The nodes whose matches are found at once by the function of SQL."""


class _Matches(NamedTuple):
    pairs: Int64Array
    """Packed, sorted and distinct: (matches,)."""
    similarity: FloatArray
    """The similarity of each pair: (matches,)."""

    def take(self, chosen: BoolArray) -> _Matches:
        return _Matches(self.pairs[chosen], self.similarity[chosen])


def shingle_hashes(tokens: Tokens, shingle: Shingle) -> list[bytes]:
    shingles = find_shingles(tokens, shingle)
    data = shingles.data.tobytes()
    starts, ends = shingles.starts.tolist(), shingles.ends.tolist()
    hashes = []
    for first, last in pairwise(shingles.offsets.tolist()):
        spans = zip(starts[first:last], ends[first:last], strict=True)
        texts = sorted(data[start:end] for start, end in spans)
        hashes.append(hashlib.sha256(b"\n".join(texts)).digest()[:16])
    return hashes


def faults(
    connection: Connection, store: Store, threshold: float, suspects: list[int]
) -> Iterator[Problem]:
    """Yield what is wrong with the nodes, matches and clusters of a corpus, in the caller's snapshot.

    threshold: the least similarity of a match.
    """
    corpus = store.corpus
    remedy = f"textsim reconcile {quote(corpus.name)}"

    def rows(statement: Any, **parameters: Any) -> list[tuple[Any, ...]]:
        return connection.execute(corpus.statement(statement), parameters).fetchall()

    for statement, kind in (
        (integrity_statements.WRONG_NODES, "node"),
        (integrity_statements.MATCHES_WITHOUT_NODES, "match"),
        (integrity_statements.WRONG_CLUSTERS, "cluster"),
        (integrity_statements.WRONG_ALIASES, "alias"),
    ):
        for subject, detail in rows(statement, suspects=suspects):
            yield Problem(kind, subject, detail, remedy)
    nodes, crowded = _nodes_to_compare(connection, store, threshold)
    for start in range(0, len(nodes), NODES_AT_ONCE):
        batch = nodes[start : start + NODES_AT_ONCE].tolist()
        for a, b, stored, expected in rows(
            integrity_statements.WRONG_MATCHES,
            nodes=batch,
            threshold=threshold,
            crowded=crowded.tolist(),
        ):
            detail = (
                f'its stored similarity to document "{b[:100]}" is {stored}, expected {expected}'
            )
            yield Problem("match", a, detail, remedy)


def _nodes_to_compare(
    connection: Connection, store: Store, threshold: float
) -> tuple[Int64Array, Int64Array]:
    """Return the nodes whose matches the function of SQL finds too, and the crowded nodes."""
    columns = fetch_arrays(connection, store.corpus, integrity_statements.NODES_OF_DOCUMENTS)
    documents, nodes = map(load_int4_array, columns)
    most, stored_crowded = connection.execute(
        store.corpus.statement(integrity_statements.CROWDED_NODES)
    ).fetchone() or (0, [])
    few = FewLinks(most)
    criterion = Criterion(JACCARD, threshold, for_merges=True)
    for links in Join(StoredHost(connection, store, criterion), criterion).links():
        few.add(links.take(is_among(links.left, documents) & is_among(links.right, documents)))
    crowded = np.union1d(
        np.array(stored_crowded, np.int64), nodes[np.searchsorted(documents, few.crowded())]
    )
    computed = _found(few.links(), documents, nodes)
    stored = _stored(connection, store)
    # A node whose documents are all in the log has the matches that it had before.
    is_left, is_right = (np.isin(side(stored.pairs), nodes) for side in (left_of, right_of))
    stored = stored.take(is_left & is_right)
    both, in_stored, in_found = np.intersect1d(
        stored.pairs, computed.pairs, assume_unique=True, return_indices=True
    )
    differs = stored.similarity[in_stored] != computed.similarity[in_found]
    one = np.setxor1d(stored.pairs, computed.pairs, assume_unique=True)
    is_whole = ~(np.isin(left_of(one), crowded) | np.isin(right_of(one), crowded))
    # The join knows no judgements.
    rows = connection.execute(store.corpus.statement(integrity_statements.JUDGED_NODES)).fetchall()
    judged = np.array([node for (node,) in rows], np.int64)
    different = np.concatenate((one[is_whole], both[differs]))
    return np.union1d(left_of(different), judged), crowded


def _found(links: Links, documents: Int32Array, nodes: Int32Array) -> _Matches:
    """Return the matches of nodes; documents: those to compare, sorted; nodes: the node of each."""
    a, b = (nodes[np.searchsorted(documents, side)] for side in links[:2])
    pairs = pack(np.minimum(a, b), np.maximum(a, b))[a != b]
    distinct, firsts = np.unique(pairs, return_index=True)
    return _Matches(distinct, links.similarity[a != b][firsts])


def _stored(connection: Connection, store: Store) -> _Matches:
    a, b, similarity = fetch_arrays(connection, store.corpus, integrity_statements.STORED_MATCHES)
    packed = pack(load_int4_array(a), load_int4_array(b))
    order = np.argsort(packed)
    return _Matches(packed[order], load_float8_array(similarity)[order])
