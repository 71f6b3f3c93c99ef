"""textsim track and untrack: clusters that stay current."""

from __future__ import annotations

from typing import Annotated

import typer

from textsim_db.cli.connections import connect
from textsim_db.cli.messages import count, print_message
from textsim_db.cli.options import CorpusName, DatabaseUrl, number_option

TrackedThreshold = Annotated[
    float | None,
    number_option(
        "Least similarity of a match, not below the threshold of the corpus. Default: that threshold."
    ),
]
TrackedLinkage = Annotated[
    str,
    typer.Option(
        metavar="kept|single",
        help="How matches make clusters. kept: every member matches the document that was kept first. "
        "single: a chain of matches connects every two members.",
    ),
]

KeepEvents = Annotated[
    str,
    typer.Option(
        metavar="TIME",
        help="How long textsim.cluster_events() lists what happened to clusters.",
    ),
]


def track(
    corpus: CorpusName,
    linkage: TrackedLinkage = "kept",
    threshold: TrackedThreshold = None,
    keep_events: KeepEvents = "30 days",
    database_url: DatabaseUrl = None,
) -> None:
    """Keep the clusters of a corpus in tables that stay current.

    It computes the clusters of all documents now. Later changes are processed by `textsim worker`, or by
    textsim.update_clusters() in SQL. textsim.members() reads the clusters.

    Examples:
    - `textsim track news`
    - `textsim track news --linkage single --threshold 0.9`

    """
    with connect(database_url) as db:
        tracked = db.corpus(corpus)
        tracked.track(linkage, threshold, keep_events)
        documents = tracked.update_clusters()
    print_message(f"compared {count(documents, 'document')}", corpus=corpus, documents=documents)


def untrack(corpus: CorpusName, database_url: DatabaseUrl = None) -> None:
    """Remove the clusters of a tracked corpus, and their history.

    The documents stay, and can be tracked again.

    Example: `textsim untrack news`
    """
    with connect(database_url) as db:
        db.corpus(corpus).untrack()
