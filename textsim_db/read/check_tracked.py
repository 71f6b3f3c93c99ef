"""The integrity of a tracked corpus: its matches and clusters are those of its documents."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from textsim_db.db.engine import Connection
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.read import statements
from textsim_db.results import Problem

NODES_AT_ONCE = 1000
"""The nodes whose matches are found at once."""


def tracking_problems(connection: Connection, corpus: StoredCorpus) -> Iterator[Problem]:
    """Yield what is wrong with the matches and clusters of a corpus; nothing if it is not tracked."""
    row = connection.execute(corpus.statement(statements.TRACKED)).fetchone()
    if row is None:
        return
    linkage, threshold = row
    remedy = track_again(corpus)
    for subject, is_gone in connection.execute(corpus.statement(statements.WRONG_NODES)):
        detail = (
            "it was removed, and has a node" if is_gone else "its node is not that of its shingles"
        )
        yield Problem("node", subject, detail, remedy)
    nodes = [node for (node,) in connection.execute(corpus.statement(statements.NODES))]
    for start in range(0, len(nodes), NODES_AT_ONCE):
        parameters = {"nodes": nodes[start : start + NODES_AT_ONCE], "threshold": threshold}
        statement = corpus.statement(statements.WRONG_MATCHES)
        for a, b, stored, similarity in connection.execute(statement, parameters):
            detail = (
                f'its stored similarity to document "{b[:100]}" is {stored}, expected {similarity}'
            )
            yield Problem("match", a, detail, remedy)
    statement = corpus.statement(statements.WRONG_CLUSTERS)
    for (subject,) in connection.execute(statement, {"linkage": linkage}):
        yield Problem("cluster", subject, "its cluster is not that of its matches", remedy)


def track_again(corpus: StoredCorpus) -> str:
    """Return the commands that compute the matches and clusters of a corpus anew."""
    return f"textsim untrack {quote(corpus.name)}; then: textsim track {quote(corpus.name)}"
