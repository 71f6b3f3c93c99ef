"""Computes the matches of a tracked corpus anew with the join engine, if most documents wait for it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import Int64Array
from textsim_db.cluster.join import Join
from textsim_db.cluster.spanning_forest import FewLinks, Ids, Links, join, roots
from textsim_db.compare.match_rule import Criterion
from textsim_db.db.engine import Connection, transaction
from textsim_db.db.store import Store
from textsim_db.measures.by_name import JACCARD
from textsim_db.read.list_pairs import StoredHost
from textsim_db.read.snapshot import snapshot
from textsim_db.sync import statements

log = logging.getLogger(__name__)

LEAST_DOCUMENTS = 5_000
"""With fewer documents in the log, the statements that process changes are quick enough."""


class _Nodes(NamedTuple):
    """The nodes of documents, and their matches."""

    documents: Ids
    """The documents with words, sorted: (documents,)."""
    nodes: Int64Array
    """The node of each document: (documents,)."""
    matches: Links
    """Pairs of nodes with their similarities, left < right, each once."""
    crowded: Int64Array
    """The nodes that have more matches with earlier ones than are kept."""


def build(store: Store, waits: bool) -> int:
    """Compute all clusters anew, if most documents wait for theirs; return the number of documents."""
    corpus = store.corpus
    with transaction(store.engine) as connection:
        row = connection.execute(statements.LOCK_CLUSTERS, [corpus.id, waits]).fetchone()
        entries = _entries(connection, store) if row is not None and row[0] else []
        if not entries:
            return 0
        connection.execute(statements.ALLOW_JOINS)
        limits = connection.execute(statements.LIMITS_OF_MATCHES, [corpus.id]).fetchone()
        threshold, most = limits or (corpus.config.threshold, 0)
        computed = _find(store, threshold, most)
        for statement in statements.REMOVE_NODES_AND_MATCHES:
            connection.execute(corpus.statement(statement))
        rows = zip(computed.documents.tolist(), computed.nodes.tolist(), strict=True)
        _copy(connection, corpus.statement(statements.COPY_NODES), ["int4", "int4"], rows)
        links = zip(*(column.tolist() for column in computed.matches), strict=True)
        types = ["int4", "int4", "float8"]
        _copy(connection, corpus.statement(statements.COPY_MATCHES), types, links)
        crowded = ([node, True] for node in computed.crowded.tolist())
        _copy(connection, corpus.statement(statements.COPY_CROWDED), ["int4", "bool"], crowded)
        # From here on, what the log names has changed since it was read.
        for statement in (
            statements.REMOVE_CHANGED_NODES,
            statements.REMOVE_MATCHES_WITHOUT_NODES,
            statements.DATE_DOUBTFUL,
            statements.END_ENTRIES,
            statements.PLACE_JUDGED,
            statements.STORE_ALL_GROUPS,
            statements.LOG_UNSEEN,
        ):
            connection.execute(corpus.statement(statement), {"entries": entries})
        for statement in statements.ANALYZE_CLUSTERS:
            connection.execute(corpus.statement(statement))
    log.info("corpus %s: computed the clusters of all documents", corpus.name)
    return len(computed.documents)


def _entries(connection: Connection, store: Store) -> list[int]:
    """Return the log entries of a corpus for which its clusters are computed anew, or none."""
    statement = store.corpus.statement(statements.CLUSTER_ENTRIES)
    entries, waiting = connection.execute(statement).fetchone() or ([], 0)
    if waiting < LEAST_DOCUMENTS:
        return []
    statement = store.corpus.statement(statements.COUNT_NODES)
    (nodes,) = connection.execute(statement, [waiting]).fetchone() or (0,)
    return entries if waiting > nodes else []


def _find(store: Store, threshold: float, most: int) -> _Nodes:
    """Read all documents, and return their nodes and matches; most: with earlier nodes."""
    with snapshot(store.engine) as connection:
        statement = store.corpus.statement(statements.IDS_TO_CLUSTER)
        rows = connection.execute(statement).fetchall()
        documents = np.array([id_ for (id_,) in rows], np.int64)
        criterion = Criterion(JACCARD, threshold, for_merges=True)
        host = StoredHost(connection, store, criterion)
        few = FewLinks(most)
        for links in Join(host, criterion).links():
            few.add(links)
    links = few.links()
    classes = host.copies.classes
    firsts = host.copies.representatives[classes.owners()]
    is_equal = links.similarity == 1
    left = np.searchsorted(documents, np.concatenate((firsts, links.left[is_equal])))
    right = np.searchsorted(documents, np.concatenate((classes.values, links.right[is_equal])))
    parents = np.arange(len(documents))
    join(parents, left, right)
    _, nodes = np.unique(roots(parents), return_inverse=True)
    nodes = nodes.astype(np.int64) + 1
    links = links.take(~is_equal)
    x, y = (nodes[np.searchsorted(documents, side)] for side in (links.left, links.right))
    pairs, places = np.unique(
        np.stack((np.minimum(x, y), np.maximum(x, y))), axis=1, return_index=True
    )
    crowded = np.unique(nodes[np.searchsorted(documents, few.crowded())])
    return _Nodes(documents, nodes, Links(pairs[0], pairs[1], links.similarity[places]), crowded)


def _copy(
    connection: Connection, statement: str, types: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(types)
        for row in rows:
            copy.write_row(row)
