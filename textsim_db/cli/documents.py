"""textsim index and remove: the documents of a corpus."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textsim_db.cli.add_documents import add_documents, print_report
from textsim_db.cli.connections import connect, open_corpus
from textsim_db.cli.messages import Refusals, print_message, print_result
from textsim_db.cli.options import (
    CorpusName,
    Create,
    DatabaseUrl,
    KeyColumns,
    TextColumn,
    choice_option,
    column_option,
    misused,
)
from textsim_db.cli.progress import progress
from textsim_db.cli.query_documents import QueryDocuments
from textsim_db.cli.settings_options import (
    PartialSettings,
    check_existing,
    complete,
    with_settings,
)
from textsim_db.errors import ConfigurationError, InputError
from textsim_db.files.file_kinds import Kind
from textsim_db.settings import SETTINGS
from textsim_db.show.numbers import count

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.database import Database


@with_settings(*SETTINGS)
def index(
    corpus: CorpusName,
    settings: PartialSettings,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH", help='Files and folders; "-" is standard input, with JSON lines.'
        ),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option(
            "--query",
            metavar="SQL",
            help="Read a query of the database instead of files. Its columns are the key and the text, "
            "and with --scope the scope.",
        ),
    ] = None,
    kind: Annotated[
        Kind,
        choice_option(
            Kind,
            "Format of the files. auto: .jsonl, .csv, .tsv and .parquet are read as such, any "
            "other file is one document, except JSON, which is refused with the command that reads it. "
            "Each may be gzip'ed (.gz).",
        ),
    ] = Kind.AUTO,
    key: KeyColumns = None,
    text: TextColumn = "text",
    scope: Annotated[
        str | None,
        column_option("Column, or member in JSON, with the scope. A scoped corpus requires it."),
    ] = None,
    glob: Annotated[
        str,
        typer.Option(metavar="PATTERN", help="Read these files of a folder and its subfolders."),
    ] = "*",
    create: Create = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Add documents to a corpus; a document with a known key replaces the stored document.

    A plain text file is one document, with its path as the key. Unchanged documents are not written
    again. It prints how many documents were added, replaced, unchanged and refused. If a key comes again
    in one call, its last document stays: the command counts these documents, names some of the keys, and
    exits with status 0. A unique corpus leaves out documents that match others. Then the command lists
    them, and exits with status 1.

    Examples:
    - `textsim index news articles.jsonl.gz --create`
    - `textsim index news articles.csv --key nr --text body`
    - `textsim index code src --glob "*.py" --create --shingle word:5`
    - `textsim index notes notes.jsonl --scope user --create`
    - `textsim index news --query "SELECT id, body FROM article WHERE published"`

    """
    from textsim_db.files.read_documents import Inputs

    if create and scope is not None:
        settings = {"scoped": True} | settings
    _check_usage(settings, glob, create, scope)
    if not paths and query is None:
        raise misused("PATH", 'name a file, a folder, "-" or --query')
    if paths and query is not None:
        raise misused("--query", "it reads no files; leave out one of the two")
    refusals = Refusals()
    with connect(database_url) as db:
        inputs: Inputs | QueryDocuments = (
            Inputs(paths or [], refusals.add, kind, key or ["id"], text, scope, glob)
            if query is None
            else QueryDocuments(db, query, scope is not None)
        )
        opened, documents = _open_or_create(db, corpus, create, settings, iter(inputs))
        if opened is None:
            refusals.show()
            raise InputError(
                f'the corpus "{corpus}" was not created, because the input has no document'
            )
        _check_scope(opened, scope)
        start = time.monotonic()
        report = add_documents(opened, inputs, documents)
        seconds = time.monotonic() - start
    refusals.add_documents(report.refused)
    print_report(corpus, report, refusals, seconds)
    if refusals.count or report.twins:
        raise typer.Exit(1 if report.stored or report.twins else 2)


def remove(
    corpus: CorpusName,
    keys: Annotated[list[str], typer.Argument(metavar="KEY", help="Keys of the documents.")],
    database_url: DatabaseUrl = None,
) -> None:
    """Remove documents from a corpus by key.

    It prints how many documents were removed, and the unknown keys. Exit status 1 if some keys are
    unknown, 2 if all are.

    Example: `textsim remove news article-17 article-18`
    """
    with connect(database_url) as db:
        opened = db.manage(corpus)
        unknown = [key for key in dict.fromkeys(keys) if key not in opened]
        removed = opened.remove(keys)
    print_result(
        f"removed {count(removed, 'document')}", corpus=corpus, documents=removed, unknown=unknown
    )
    for key in unknown:
        message = f'no document "{key}" in the corpus'
        print_message(message, logging.WARNING, corpus=corpus, key=key)
    if unknown:
        raise typer.Exit(1 if removed else 2)


def expire(corpus: CorpusName, database_url: DatabaseUrl = None) -> None:
    """Remove the documents of a corpus whose time is over.

    Searches do not find them in any case. A worker removes them too. It prints how many documents were
    removed.

    Example: `textsim expire chat`
    """
    with connect(database_url) as db, progress("removing", "documents") as show:
        removed = db.manage(corpus).expire(show)
    print_result(f"removed {count(removed, 'document')}", corpus=corpus, documents=removed)


def _check_usage(settings: PartialSettings, glob: str, create: bool, scope: str | None) -> None:
    """Raise BadParameter for options that exclude each other, before any file is read."""
    if not glob:
        raise misused("--glob", 'it is empty; expected a pattern such as "*.md"')
    if settings and not create:
        name = next(iter(settings)).replace("_", "-")
        raise misused(
            f"--{name}",
            "settings are for a new corpus: give --create, or change them with textsim rebuild",
        )
    if settings:
        complete(settings)
    if settings.get("scoped") and scope is None:
        raise misused(
            "--scoped", "name the column, or the member in JSON, of the scopes with --scope"
        )


def _check_scope(corpus: Corpus, scope: str | None) -> None:
    """Raise ConfigurationError before the first of many records would be refused."""
    try:
        corpus.config.check_scope(corpus.name, scope is not None)
    except ConfigurationError as error:
        if corpus.config.scoped:
            error.add_note(
                "the option --scope names the column, or the member in JSON, of the scopes"
            )
        raise


def _open_or_create(
    db: Database, name: str, create: bool, settings: PartialSettings, documents: Iterator[Any]
) -> tuple[Corpus | None, Iterator[Any]]:
    """Return the corpus and all documents; None if there is neither a corpus nor a document.

    A corpus is created only after the first document has been read. Otherwise a mistake in the command
    would leave an empty corpus, with which the corrected command might conflict.
    """
    corpus = open_corpus(db, name, create)
    if corpus is not None:
        if settings:
            check_existing(corpus, settings)
        return corpus, documents
    first = list(islice(documents, 1))
    created = db.create_corpus(name, exist_ok=True, **settings) if first else None
    return created, chain(first, documents)
