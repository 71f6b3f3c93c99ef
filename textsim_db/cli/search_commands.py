"""textsim query, nearest, neighbours, pairs and clusters: searches of a corpus."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textsim_db.cli.messages import print_message
from textsim_db.cli.operations import JACCARD_NAME, Call, Operation, note_unknown_scope
from textsim_db.cli.output import Format, write
from textsim_db.cli.progress_lines import counted
from textsim_db.results.html import count

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.results import Cluster


def _note_no_match(call: Call) -> None:
    threshold, config = call.arguments["threshold"], call.corpus.config
    is_complete = call.arguments["measure"] == JACCARD_NAME and (
        threshold is None or threshold >= config.threshold
    )
    print_message("no document is that similar" if is_complete else "no candidate is that similar")
    _note_text_without_words(call)


def _note_text_without_words(call: Call) -> None:
    text = call.arguments.get("text")
    if text is not None and not _has_words(call.corpus, text):
        print_message("the text has no words that count in this corpus", logging.WARNING)


def _has_words(corpus: Corpus, text: str) -> bool:
    from textsim_db.read import search_on_server

    if search_on_server.is_possible(corpus.config, text, None):
        return corpus._current.read(search_on_server.has_words, text)
    from textsim_db.sketch.sketch_texts import places_of_units

    return len(places_of_units(text, corpus.config).starts) > 0


def _show_nearest(call: Call) -> None:
    number, k = call.write_rows(), call.arguments["k"]
    if number < k:
        print_message(
            f"{count(number, 'document')} found, not {k}. Documents below "
            f"{call.corpus.config.threshold:g}, the threshold of the corpus, may be missed; a corpus "
            "with a lower threshold finds more"
        )


QUERY = Operation(
    "query",
    """List the documents that are similar to a text, the most similar first.

    It prints the similarity, which is exact (Jaccard, of the sets of shingles), the estimate from the
    signatures, and the key.

    Examples:
    - `textsim query news "the text to look for" --threshold 0.5`
    - `textsim query news --file article.txt --max-results 3 --format jsonl`
    - `textsim query news "the text" --measure cosine_similarity --threshold 0.9`

    """,
    columns=("similarity", "estimate", "key"),
    are_searches=True,
    note_none=_note_no_match,
    computes=False,
)
NEAREST = Operation(
    "nearest",
    """List the documents that are most similar to a text, without a threshold.

    In a corpus or a scope of at most 1,000 documents it compares all with the text. A larger corpus must
    be exact (--recall 1). It looks the text up by the rarest shingles of each document: the lower its
    threshold, the more of them. Every document from its threshold on is found. Below it, documents that
    share only other shingles with the text are missed, so a threshold of 0.5 or less suits this search.

    Examples:
    - `textsim nearest titles "the text to look for"`
    - `textsim nearest titles --file article.txt -k 3 --format jsonl`

    """,
    columns=("similarity", "key"),
    are_searches=True,
    note_none=_note_text_without_words,
    show=_show_nearest,
    computes=False,
)
NEIGHBOURS = Operation(
    "neighbours",
    """List the documents that are similar to a document of the corpus, the most similar first.

    It prints the similarity, the estimate from the signatures, and the key.

    Example: `textsim neighbours news article-17 --threshold 0.6`
    """,
    columns=("similarity", "estimate", "key"),
    are_searches=True,
    note_none=_note_no_match,
    computes=False,
)
PAIRS = Operation(
    "pairs",
    """List all pairs of similar documents.

    It prints the similarity and both keys. JSON lines and CSV are written while the search runs; a
    table is sorted, the most similar pair first.

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


Inspect = Annotated[
    bool | None,
    typer.Option(
        "--inspect",
        help="Print what holds each cluster together instead of its keys: the weakest member, the "
        "least similarity of two members, and whether it is a template that other documents share.",
    ),
]
INSPECT = Operation(
    "inspect_clusters", "", show=_show_inspected, progress=("searching", "clusters")
)
CLUSTERS = Operation(
    "clusters",
    """List the clusters of similar documents, the largest first.

    It prints the size, the keys, and weakest: the lowest similarity of the links that hold the cluster
    together. With linkage kept it also prints the document that is kept, whose key comes first. CSV has
    one line for each document.

    Examples:
    - `textsim clusters news --format jsonl`
    - `textsim clusters news --linkage kept --threshold 0.9`
    - `textsim clusters news --inspect`

    """,
    show=_show_clusters,
    variants={"inspect": (Inspect, INSPECT)},
)
