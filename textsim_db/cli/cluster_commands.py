"""textsim track, members and untrack: clusters that stay current."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textsim_db.cli.messages import print_message, print_result
from textsim_db.cli.operations import Call, Operation
from textsim_db.cli.output import Id, write
from textsim_db.cli.progress_lines import progress
from textsim_db.errors import DocumentNotFound
from textsim_db.results.html import count

if TYPE_CHECKING:
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


def _show_members(call: Call) -> None:
    members = call.result
    if "key" in call.arguments:
        members, key = list(members), call.arguments["key"]
        if not members and key not in call.corpus:
            raise DocumentNotFound(f'corpus "{call.corpus.name}" has no document "{key}"')
    clusters: set[int] = set()
    documents = write(_MEMBER_COLUMNS, _member_rows(members, clusters), call.form)
    print_message(f"{count(len(clusters), 'cluster')} of {count(documents, 'document')} found")
    if outdated := call.corpus.status().outdated:
        print_message(
            f"{count(outdated, 'document')} changed since the last update of the clusters; to update "
            "them: textsim worker --once"
        )


def _member_rows(members: Iterable[Member], clusters: set[int]) -> Iterator[tuple[Any, ...]]:
    for key, cluster, representative, similarity, crowded in members:
        clusters.add(cluster)
        yield Id(cluster), key, representative, similarity, crowded


ClusterKey = Annotated[
    str | None, typer.Argument(metavar="KEY", help="List only the cluster of this document.")
]
MEMBERS_OF = Operation("members_of", "", show=_show_members, computes=False)
MEMBERS = Operation(
    "members",
    """List the documents of the clusters of a tracked corpus, one cluster after the other.

    It prints the id of the cluster, the key, the representative of the cluster, and the similarity to
    it. crowded says that the cluster may be incomplete, because too many documents are like this one.
    Documents that changed since the last update have the clusters that they had then.

    Examples:
    - `textsim members news`
    - `textsim members news article-17 --format jsonl`

    """,
    show=_show_members,
    computes=False,
    variants={"key": (ClusterKey, MEMBERS_OF)},
)
