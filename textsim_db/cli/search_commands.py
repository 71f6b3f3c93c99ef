"""textsim query, nearest, neighbours, pairs and clusters: searches of a corpus."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textsim_db.cli.connections import connect, is_file_name, read_one_text
from textsim_db.cli.messages import print_message
from textsim_db.cli.options import (
    CorpusName,
    DatabaseUrl,
    LanguageLimit,
    LinkageOption,
    ScopeLimit,
    ScopeOfPairs,
    Threshold,
    misused,
    path_option,
    positive_number_option,
)
from textsim_db.cli.output import Format, FormatOption, write
from textsim_db.cli.progress_lines import counted, progress
from textsim_db.errors import shown, suggestion
from textsim_db.results.html import count

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.results import Cluster, InspectedCluster, Match


_JACCARD = "jaccard"
_MOST_READ_FOR_SCOPES = 1_000_000
"""The scopes of a larger corpus are not read to explain an empty result: that takes seconds."""


MeasureOption = Annotated[
    str,
    typer.Option(
        "--measure",
        metavar="NAME",
        help="Verify and order the candidates by this measure, such as cosine_similarity, "
        "containment, overlap or levenshtein. Any other than jaccard needs --threshold: the least "
        "similarity, or the greatest distance.",
    ),
]
MaxResults = Annotated[
    int | None,
    positive_number_option("Print at most this many results, the first ones. Default: all."),
]


SearchedText = Annotated[
    str | None,
    typer.Argument(
        metavar="TEXT", help='The text to look for; "-" is standard input. Or use --file.'
    ),
]
SearchedFile = Annotated[
    str | None, path_option('Read the text from a file; "-" is standard input.', "--file")
]


def query(
    corpus: CorpusName,
    text: SearchedText = None,
    file: SearchedFile = None,
    threshold: Threshold = None,
    max_results: MaxResults = None,
    measure: MeasureOption = _JACCARD,
    language: LanguageLimit = None,
    scope: ScopeLimit = None,
    form: FormatOption = Format.TABLE,
    database_url: DatabaseUrl = None,
) -> None:
    """List the documents that are similar to a text, the most similar first.

    It prints the similarity, which is exact (Jaccard, of the sets of shingles), the estimate from the
    signatures, and the key.

    Examples:
    - `textsim query news "the text to look for" --threshold 0.5`
    - `textsim query news --file article.txt --max-results 3 --format jsonl`
    - `textsim query news "the text" --measure cosine_similarity --threshold 0.9`

    """
    searched = searched_text(text, file)
    with connect(database_url) as db:
        opened = db.corpus(corpus)
        matches = opened.query(searched, threshold, max_results, measure, language, scope)
        _write_matches(opened, matches, threshold, measure, form)
        if not matches:
            _note_text_without_words(opened, searched)
            note_unknown_scope(opened, scope)


def nearest(
    corpus: CorpusName,
    text: SearchedText = None,
    file: SearchedFile = None,
    k: Annotated[int, positive_number_option("Print this many.", "--k", "-k")] = 10,
    language: LanguageLimit = None,
    scope: ScopeLimit = None,
    form: FormatOption = Format.TABLE,
    database_url: DatabaseUrl = None,
) -> None:
    """List the documents that are most similar to a text, without a threshold.

    The corpus must be exact (--recall 1). It looks the text up by the rarest shingles of each document:
    the lower its threshold, the more of them. Every document from its threshold on is found. Below it,
    documents that share only other shingles with the text are missed, so a threshold of 0.5 or less
    suits this search.

    Examples:
    - `textsim nearest titles "the text to look for"`
    - `textsim nearest titles --file article.txt -k 3 --format jsonl`

    """
    searched = searched_text(text, file)
    with connect(database_url) as db:
        opened = db.corpus(corpus)
        matches = opened.nearest(searched, k, language, scope)
        write(("similarity", "key"), ((match.similarity, match.key) for match in matches), form)
        if not matches:
            _note_text_without_words(opened, searched)
            note_unknown_scope(opened, scope)
    if len(matches) < k:
        print_message(
            f"{count(len(matches), 'document')} found, not {k}. Documents below "
            f"{opened.config.threshold:g}, the threshold of the corpus, may be missed; a corpus with a "
            "lower threshold finds more"
        )


def neighbours(
    corpus: CorpusName,
    key: Annotated[str, typer.Argument(metavar="KEY", help="Key of the document.")],
    threshold: Threshold = None,
    max_results: MaxResults = None,
    measure: MeasureOption = _JACCARD,
    language: LanguageLimit = None,
    form: FormatOption = Format.TABLE,
    database_url: DatabaseUrl = None,
) -> None:
    """List the documents that are similar to a document of the corpus, the most similar first.

    It prints the similarity, the estimate from the signatures, and the key.

    Example: `textsim neighbours news article-17 --threshold 0.6`
    """
    with connect(database_url) as db:
        opened = db.corpus(corpus)
        matches = opened.neighbours(key, threshold, max_results, measure, language)
        _write_matches(opened, matches, threshold, measure, form)


def pairs(
    corpus: CorpusName,
    threshold: Threshold = None,
    measure: MeasureOption = _JACCARD,
    language: LanguageLimit = None,
    scope: ScopeOfPairs = None,
    form: FormatOption = Format.TABLE,
    database_url: DatabaseUrl = None,
) -> None:
    """List all pairs of similar documents.

    It prints the similarity and both keys. JSON lines and CSV are written while the search runs; a
    table is sorted, the most similar pair first.

    Example: `textsim pairs news --threshold 0.9 --format csv > pairs.csv`
    """
    with connect(database_url) as db:
        opened = db.corpus(corpus)
        similar = opened.pairs(threshold, measure, language, scope)
        rows: Iterable[tuple[float, str, str]] = ((p.similarity, p.a, p.b) for p in similar)
        rows = counted("searching", "pairs", rows, are_printed=form is not Format.TABLE)
        if form is Format.TABLE:
            sign = 1 if _is_distance(measure) else -1
            rows = sorted(rows, key=lambda row: (sign * row[0], row[1:]))
        number = write((_column(measure), "a", "b"), rows, form)
        print_message(f"{count(number, 'pair')} found")
        if not number:
            note_unknown_scope(opened, scope)


def clusters(
    corpus: CorpusName,
    threshold: Threshold = None,
    linkage: LinkageOption = "single",
    language: LanguageLimit = None,
    scope: ScopeOfPairs = None,
    judgements: Annotated[
        bool,
        typer.Option("--judgements", help="Obey the judgements of the corpus; see textsim judge."),
    ] = False,
    inspect: Annotated[
        bool,
        typer.Option(
            "--inspect",
            help="Print what holds each cluster together instead of its keys: the weakest member, the "
            "least similarity of two members, and whether it is a template that other documents share.",
        ),
    ] = False,
    form: FormatOption = Format.TABLE,
    database_url: DatabaseUrl = None,
) -> None:
    """List the clusters of similar documents, the largest first.

    It prints the size, the keys, and weakest: the lowest similarity of the links that hold the cluster
    together. With linkage kept it also prints the document that is kept, whose key comes first. CSV has
    one line for each document.

    Examples:
    - `textsim clusters news --format jsonl`
    - `textsim clusters news --linkage kept --threshold 0.9`
    - `textsim clusters news --inspect`

    """
    with connect(database_url) as db:
        opened = db.corpus(corpus)
        if inspect:
            with progress("searching", "clusters"):
                inspected = opened.inspect_clusters(
                    threshold, linkage, language, scope, judgements=judgements
                )
            _write_inspected(inspected, form)
            if not inspected:
                note_unknown_scope(opened, scope)
            return
        computed = opened.clusters(threshold, linkage, None, language, scope, judgements=judgements)
        similar = list(counted("searching", "clusters", computed))
        if not similar:
            note_unknown_scope(opened, scope)
    if form is Format.CSV:
        columns: tuple[str, ...] = ("cluster", "size", "weakest", "key", "kept")
        rows: Iterable[tuple[Any, ...]] = _one_row_a_key(similar)
    else:
        columns = ("size", "weakest", "kept", "keys")
        rows = ((len(c.keys), c.weakest, c.kept, c.keys) for c in similar)
    if linkage != "kept":
        place = columns.index("kept")
        columns = columns[:place] + columns[place + 1 :]
        rows = (row[:place] + row[place + 1 :] for row in rows)
    write(columns, rows, form)
    documents = sum(len(cluster.keys) for cluster in similar)
    print_message(f"{count(len(similar), 'cluster')} of {count(documents, 'document')} found")


def _write_inspected(inspected: list[InspectedCluster], form: Format) -> None:
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


def searched_text(text: str | None, file: str | None) -> str:
    """Return the text of a search, given as an argument or in a file."""
    if (text is None) == (file is None):
        raise misused("TEXT", "give either a text or --file")
    name = "-" if text == "-" else file
    if text is not None and is_file_name(text):
        print_message(f"the text is the name of a file; to search for its content: --file {text}")
    return read_one_text(name, "searched for") if name is not None else str(text)


def _note_text_without_words(corpus: Corpus, text: str) -> None:
    from textsim_db.sketch.sketch_texts import places_of_units

    if not len(places_of_units(text, corpus.config).starts):
        print_message("the text has no words that count in this corpus", logging.WARNING)


def note_unknown_scope(corpus: Corpus, scope: str | None) -> None:
    """After an empty result, say whether any document has the scope: a misspelt scope finds nothing."""
    if scope is None:
        return
    if corpus.status().indexed > _MOST_READ_FOR_SCOPES:
        print_message(f"to list the scopes: textsim status {corpus.name} --scopes")
        return
    scopes = [each.scope for each in corpus.scopes()]
    if scope not in scopes:
        message = f'no document has the scope "{shown(scope)}"{suggestion(scope, scopes)}'
        print_message(message, logging.WARNING)


def _write_matches(
    corpus: Corpus, matches: list[Match], threshold: float | None, measure: str, form: Format
) -> None:
    rows = ((match.similarity, match.estimate, match.key) for match in matches)
    if write((_column(measure), "estimate", "key"), rows, form):
        return
    is_complete = measure == _JACCARD and (
        threshold is None or threshold >= corpus.config.threshold
    )
    print_message("no document is that similar" if is_complete else "no candidate is that similar")


def _column(measure: str) -> str:
    from textsim_db.measures.by_name import measure_of

    return "similarity" if measure == _JACCARD else measure_of(measure).name


def _is_distance(measure: str) -> bool:
    from textsim_db.measures.by_name import measure_of

    return measure_of(measure).is_distance


def _one_row_a_key(clusters: list[Cluster[str]]) -> Iterator[tuple[Any, ...]]:
    for number, cluster in enumerate(clusters, start=1):
        for key in cluster.keys:
            yield number, len(cluster.keys), cluster.weakest, key, cluster.kept
