"""textsim track and untrack: clusters that stay current."""

from __future__ import annotations

from typing import Annotated

import typer

from textsim_db.cli.connections import connect
from textsim_db.cli.messages import confirm, print_result
from textsim_db.cli.options import (
    CorpusName,
    DatabaseUrl,
    LinkageOption,
    Yes,
    choice_option,
    number_option,
)
from textsim_db.cli.progress import progress
from textsim_db.errors import shown
from textsim_db.settings import Mode
from textsim_db.show.numbers import count

TrackedThreshold = Annotated[
    float | None,
    number_option(
        "Least similarity of a match, not below the threshold of the corpus. Default: that threshold."
    ),
]

TrackedMode = Annotated[
    Mode,
    choice_option(
        Mode,
        "queue: workers update clusters moments later. inline: the transaction that writes "
        "documents also updates their clusters, one transaction after the other.",
    ),
]

KeepEvents = Annotated[
    str,
    typer.Option(
        metavar="TIME", help="How long textsim.cluster_events() lists what happened to clusters."
    ),
]


def track(
    corpus: CorpusName,
    linkage: LinkageOption = "kept",
    threshold: TrackedThreshold = None,
    mode: TrackedMode = Mode.QUEUE,
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
        tracked.track(linkage, threshold, mode=mode, keep_events=keep_events)
        try:
            with progress("computing", "clusters"):
                documents = tracked.update_clusters()
        except KeyboardInterrupt as error:
            error.add_note(
                "the corpus is tracked; to compute the missing clusters: textsim worker --once"
            )
            raise
    print_result(f"compared {count(documents, 'document')}", corpus=corpus, documents=documents)


def untrack(
    corpus: CorpusName,
    yes: Yes = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Remove the clusters of a tracked corpus, and their history.

    The documents stay, and can be tracked again. Then their clusters have other ids.

    Examples:
    - `textsim untrack news`
    - `textsim untrack news --yes`

    """
    confirm(f'remove the clusters of the corpus "{shown(corpus)}" and their history', yes)
    with connect(database_url) as db:
        db.manage(corpus).untrack()
    print_result(f'the corpus "{shown(corpus)}" is no longer tracked', corpus=corpus)
