"""textsim track, members and untrack: clusters that stay current."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textsim_db.cli.connections import connect
from textsim_db.cli.messages import print_message, print_result
from textsim_db.cli.operations import Call, Operation
from textsim_db.cli.options import (
    CorpusName,
    DatabaseUrl,
)
from textsim_db.cli.output import Format, FormatOption, Id, write
from textsim_db.cli.progress_lines import progress
from textsim_db.errors import DocumentNotFound
from textsim_db.results.html import count

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.results import Member


_MEMBER_COLUMNS = ("cluster", "key", "representative", "similarity", "crowded")


def _show_tracked(call: Call) -> None:
    try:
        with progress("computing", "clusters"):
            documents = call.corpus.update_clusters()
    except KeyboardInterrupt as error:
        error.add_note(
            "the corpus is tracked; to compute the missing clusters: textsim worker --once"
        )
        raise
    message = f"compared {count(documents, 'document')}"
    print_result(message, corpus=call.corpus.name, documents=documents)


TRACK = Operation(
    "track",
    """Keep the clusters of a corpus in tables that stay current.

    It computes the clusters of all documents now. Later changes are processed by `textsim worker`, or by
    textsim.update_clusters() in SQL. `textsim members` lists the clusters.

    Examples:
    - `textsim track news`
    - `textsim track news --linkage single --threshold 0.9`

    """,
    show=_show_tracked,
    defaults={"keep_events": "30 days"},
)
UNTRACK = Operation(
    "untrack",
    """Remove the clusters of a tracked corpus, and their history.

    The documents stay, and can be tracked again. Then their clusters have other ids.

    Examples:
    - `textsim untrack news`
    - `textsim untrack news --yes`

    """,
    done='the corpus "{corpus}" is no longer tracked',
    asks='remove the clusters of the corpus "{corpus}" and their history',
    computes=False,
)


def members(
    corpus: CorpusName,
    key: Annotated[
        str | None,
        typer.Argument(metavar="KEY", help="List only the cluster of this document."),
    ] = None,
    form: FormatOption = Format.TABLE,
    database_url: DatabaseUrl = None,
) -> None:
    """List the documents of the clusters of a tracked corpus, one cluster after the other.

    It prints the id of the cluster, the key, the representative of the cluster, and the similarity to
    it. crowded says that the cluster may be incomplete, because too many documents are like this one.
    Documents that changed since the last update have the clusters that they had then.

    Examples:
    - `textsim members news`
    - `textsim members news article-17 --format jsonl`

    """
    clusters: set[int] = set()
    with connect(database_url) as db:
        tracked = db.manage(corpus)
        listed = tracked.members() if key is None else _cluster_of(tracked, key)
        documents = write(_MEMBER_COLUMNS, _member_rows(listed, clusters), form)
        outdated = tracked.status().outdated
    print_message(f"{count(len(clusters), 'cluster')} of {count(documents, 'document')} found")
    if outdated:
        print_message(
            f"{count(outdated, 'document')} changed since the last update of the clusters; to update "
            "them: textsim worker --once"
        )


def _cluster_of(corpus: Corpus, key: str) -> list[Member]:
    """Return the members of the cluster of a document; raises DocumentNotFound."""
    members_of_cluster = list(corpus.members_of(key))
    if not members_of_cluster and key not in corpus:
        raise DocumentNotFound(f'corpus "{corpus.name}" has no document "{key}"')
    return members_of_cluster


def _member_rows(members: Iterable[Member], clusters: set[int]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of members, and add the ids of their clusters to a set."""
    for key, cluster, representative, similarity, crowded in members:
        clusters.add(cluster)
        yield Id(cluster), key, representative, similarity, crowded
