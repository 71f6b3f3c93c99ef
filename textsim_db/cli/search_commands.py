"""textsim query, neighbours, pairs, clusters, track: what is similar in a corpus."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from textsim_db.cli.messages import print_message, print_result
from textsim_db.cli.operations import JACCARD_NAME, Call, Operation, note_unknown_scope
from textsim_db.cli.output import Format, Id, write
from textsim_db.cli.progress_lines import counted, progress
from textsim_db.errors import DocumentNotFound
from textsim_db.results.shown_values import count

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.results import Cluster, Member


def _note_no_match(call: Call) -> None:
    threshold, config = call.arguments["threshold"], call.corpus.config
    is_complete = call.arguments["measure"] == JACCARD_NAME and (
        threshold is None or threshold >= config.threshold
    )
    print_message("no document is that similar" if is_complete else "no candidate is that similar")
    text = call.arguments.get("text")
    if text is not None and not _has_words(call.corpus, text):
        print_message("the text has no words that count in this corpus", logging.WARNING)


def _has_words(corpus: Corpus, text: str) -> bool:
    from textsim_db.read import search_on_server

    if search_on_server.is_possible(corpus.config, text, None):
        return corpus._current.call(search_on_server.has_words, text)
    from textsim_db.sketch.sketch_texts import places_of_units

    return len(places_of_units(text, corpus.config).starts) > 0


QUERY = Operation(
    "query",
    """List the documents that are similar to a text, the most similar first.

    It prints the similarity, which is exact (Jaccard, of the sets of shingles), and the key.

    Examples:
    - `textsim query news "the text to look for" --threshold 0.5`
    - `textsim query news --file article.txt --max-results 3 --format jsonl`
    - `textsim query news "the text" --measure cosine_similarity --threshold 0.9`

    """,
    columns=("similarity", "key"),
    are_searches=True,
    note_none=_note_no_match,
    computes=False,
)
NEIGHBOURS = Operation(
    "neighbours",
    """List the documents that are similar to a document of the corpus, the most similar first.

    Example: `textsim neighbours news article-17 --threshold 0.6`
    """,
    columns=("similarity", "key"),
    are_searches=True,
    note_none=_note_no_match,
    computes=False,
)
PAIRS = Operation(
    "pairs",
    """List the pairs of similar documents.

    An exact corpus (--recall 1) finds every pair. Any other corpus finds the share --recall of the pairs
    at its threshold, by default 95 %, and more of those above it. It prints the similarity and both
    keys. JSON lines and CSV are written while the search runs; a table is sorted, the most similar pair
    first.

    Example: `textsim pairs news --threshold 0.9 --format csv > pairs.csv`
    """,
    columns=("similarity", "a", "b"),
    noun="pair",
)


def _show_clusters(call: Call) -> None:
    similar, form = list(counted("searching", "clusters", call.result)), call.form
    if not similar:
        note_unknown_scope(call.corpus, call.arguments["scope"])
    if form is Format.CSV:
        columns: tuple[str, ...] = ("cluster", "size", "weakest", "key", "kept")
        rows: Iterable[tuple[Any, ...]] = _one_row_a_key(similar)
    else:
        columns = ("size", "weakest", "kept", "keys")
        rows = ((len(c.keys), c.weakest, c.kept, c.keys) for c in similar)
    if call.arguments["linkage"] != "kept":
        place = columns.index("kept")
        columns = columns[:place] + columns[place + 1 :]
        rows = (row[:place] + row[place + 1 :] for row in rows)
    write(columns, rows, form)
    documents = sum(len(cluster.keys) for cluster in similar)
    print_message(f"{count(len(similar), 'cluster')} of {count(documents, 'document')} found")


def _show_inspected(call: Call) -> None:
    inspected, form = call.result, call.form
    columns = (
        "size",
        "weakest",
        "weakest_member",
        "least",
        "is_exact",
        "held_by_template",
        "template",
    )
    rows = []
    for cluster, inspection in inspected:
        member, least, is_exact, template, is_held = inspection
        shown_template = template if form is Format.JSONL else " | ".join(template[:2])
        rows.append(
            (len(cluster.keys), cluster.weakest, member, least, is_exact, is_held, shown_template)
        )
    write(columns, rows, form)
    held = sum(each.inspection.held_by_template for each in inspected)
    print_message(
        f"{count(len(inspected), 'cluster')} found, {held:,} of them held together by a template"
    )
    if not inspected:
        note_unknown_scope(call.corpus, call.arguments["scope"])


def _one_row_a_key(clusters: list[Cluster[str]]) -> Iterator[tuple[Any, ...]]:
    for number, cluster in enumerate(clusters, start=1):
        for key in cluster.keys:
            yield number, len(cluster.keys), cluster.weakest, key, cluster.kept


_INSPECT = (
    "Print what holds each cluster together instead of its keys: the weakest member, the least "
    "similarity of two members, and whether it is a template that other documents share."
)
INSPECT = Operation(
    "inspect_clusters", "", show=_show_inspected, progress=("searching", "clusters")
)
CLUSTERS = Operation(
    "clusters",
    """List the clusters of similar documents, the largest first.

    The pairs are those of textsim pairs, so only an exact corpus has all of them. It prints the size,
    the keys, and weakest: the lowest similarity of the links that hold the cluster together. With
    linkage kept it also prints the document that is kept, whose key comes first. CSV has one line for
    each document.

    Examples:
    - `textsim clusters news --format jsonl`
    - `textsim clusters news --linkage kept --threshold 0.9`
    - `textsim clusters news --inspect`

    """,
    show=_show_clusters,
    variants={"inspect": (_INSPECT, INSPECT)},
)


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
    - `textsim track news --threshold 0.9`

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
    members, key = call.result, call.arguments["key"]
    if key is not None:
        members = list(members)
        if not members and key not in call.corpus:
            raise DocumentNotFound(f'corpus "{call.corpus.name}" has no document "{key[:100]}"')
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
    columns=_MEMBER_COLUMNS,
    show=_show_members,
    computes=False,
    arguments=("key",),
)
