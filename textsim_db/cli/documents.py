"""textsim index and remove."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textsim_db.cli.common import (
    CorpusName,
    DatabaseUrl,
    Refusals,
    complain,
    connect,
    count,
    one_of,
)
from textsim_db.cli.corpora import (
    Bands,
    CorpusThreshold,
    Language,
    NumHashes,
    Recall,
    Rows,
    Seed,
    Shingle,
    StopWords,
    check,
    check_settings,
    chosen_stop_words,
    given,
)
from textsim_db.cli.progress import loading
from textsim_db.errors import CorpusNotFound, DatabaseError, InputError

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.database import Database
    from textsim_db.files.read_documents import Document, Inputs
    from textsim_db.files.record_formats import Kind
    from textsim_db.results import AddReport

_MANY = 1000  # documents, from which their speed says something


def _kind(text: str) -> Kind:
    from textsim_db.files.record_formats import Kind

    return one_of(Kind, text)


def index(
    corpus: CorpusName,
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH", help='Files and folders; "-" is standard input, JSON lines.'
        ),
    ],
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            parser=_kind,
            metavar="auto|text|jsonl|csv",
            help="How the files hold documents; auto goes by .jsonl and .csv, and a file of any "
            "other name is one document. Any of these may be gzip'ed: .gz.",
        ),
    ] = "auto",
    key: Annotated[str, typer.Option(help="Member or column with the key.")] = "id",
    text: Annotated[str, typer.Option(help="Member or column with the text.")] = "text",
    glob: Annotated[str, typer.Option(help="Which files of a folder and its subfolders.")] = "*",
    create: Annotated[
        bool, typer.Option("--create", help="Create the corpus where it does not exist.")
    ] = False,
    shingle: Shingle = None,
    threshold: CorpusThreshold = None,
    recall: Recall = None,
    num_hashes: NumHashes = None,
    seed: Seed = None,
    bands: Bands = None,
    rows: Rows = None,
    stop_words: StopWords = None,
    language: Language = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Add documents to a corpus, replacing those with the same key.

    A plain text file is one document, and its path is the key. Indexing the same again writes
    nothing.

    Examples: `textsim index news articles.jsonl.gz --create`,
    `textsim index code src --glob "*.py"`
    """
    from textsim_db.files.read_documents import Inputs
    from textsim_db.files.record_formats import Kind

    if not glob:
        raise typer.BadParameter(
            'it is empty; expected a pattern such as "*.md"', param_hint="--glob"
        )
    settings = given(
        shingle=shingle,
        threshold=threshold,
        recall=recall,
        num_hashes=num_hashes,
        seed=seed,
        bands=bands,
        rows=rows,
        stop_words=chosen_stop_words(stop_words),
        language=language,
    )
    if settings and not create:
        name = next(iter(settings)).replace("_", "-")
        raise typer.BadParameter("it needs --create as well", param_hint=f"--{name}")
    check(settings)  # a setting that cannot be is told before anything is read
    refusals = Refusals()
    inputs = Inputs(paths, refusals.add, Kind(kind), key, text, glob)
    with connect(database_url) as db:
        opened, documents = _opened(db, corpus, create, settings, iter(inputs))
        if opened is None:
            refusals.show()
            raise InputError(f'no document was found, so the corpus "{corpus}" was not created')
        report, seconds = _index(opened, inputs, documents)
    refusals.add_documents(report.refused)
    complain(
        _summary(report, refusals.count, seconds),
        corpus=corpus,
        documents=report.given,
        added=report.added,
        replaced=report.replaced,
        unchanged=report.unchanged,
        refused=refusals.count,
        seconds=round(seconds, 3),
        rate=round(report.given / max(seconds, 1e-9), 1),
    )
    refusals.show()
    if refusals.count:
        raise typer.Exit(1 if report.stored else 2)


def remove(
    corpus: CorpusName,
    keys: Annotated[list[str], typer.Argument(metavar="KEY", help="Keys of the documents.")],
    database_url: DatabaseUrl = None,
) -> None:
    """Remove documents from a corpus by key.

    Unknown keys are named and make the exit status 1, or 2 where all are.

    Example: `textsim remove news article-17 article-18`
    """
    with connect(database_url) as db:
        opened = db.corpus(corpus)
        unknown = [key for key in dict.fromkeys(keys) if key not in opened]
        removed = opened.remove(keys)
    complain(f"removed {count(removed, 'document')}", corpus=corpus, documents=removed)
    for key in unknown:
        complain(f'no document "{key}" in the corpus', logging.WARNING, corpus=corpus, key=key)
    if unknown:
        raise typer.Exit(1 if removed else 2)


def _opened(
    db: Database,
    name: str,
    create: bool,
    settings: dict[str, Any],
    documents: Iterator[Document],
) -> tuple[Corpus | None, Iterator[Document]]:
    """Return the corpus and all the documents; None where it does not exist and there is none.

    A corpus is made when the first document has been read: an empty one, left behind by a mistake
    in the command, would stand in the way of the corrected command.
    """
    try:
        corpus = db.corpus(name)
    except CorpusNotFound as error:
        if not create:
            error.add_note(f"to create it, add --create, or run: textsim corpus create {name}")
            raise
    else:
        if settings:
            check_settings(corpus, settings)
        return corpus, documents
    first = list(islice(documents, 1))
    made = db.create_corpus(name, exist_ok=True, **settings) if first else None
    return made, chain(first, documents)


def _index(
    corpus: Corpus, inputs: Inputs, documents: Iterator[Document]
) -> tuple[AddReport, float]:
    from textsim_db.results import AddReport

    latest = AddReport()

    start = time.monotonic()
    try:
        with loading(inputs, documents) as (watched, show):

            def stored(report: AddReport) -> None:
                nonlocal latest
                latest = report
                show(report)

            report = corpus.add_many(watched, stored)
    except (DatabaseError, KeyboardInterrupt) as error:
        error.add_note(
            f"{count(latest.stored, 'document')} had been stored by then and stay; the same command "
            "again does only what is missing"
        )
        raise
    return report, time.monotonic() - start


def _summary(report: AddReport, refused: int, seconds: float) -> str:
    parts = [
        f"{report.added:,} added",
        f"{report.replaced:,} replaced",
        f"{report.unchanged:,} unchanged",
    ]
    if report.duplicates:
        parts.append(f"{report.duplicates:,} with a key given again (the last one wins)")
    if refused:
        parts.append(f"{refused:,} refused")
    speed = f", {report.given / seconds:,.0f} documents/s" if report.given >= _MANY else ""
    return f"{', '.join(parts)}; {seconds:.1f} s{speed}"
