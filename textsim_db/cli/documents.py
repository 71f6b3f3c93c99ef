"""textsim index and remove."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated

import typer

from textsim_db.cli.connections import connect, open_corpus
from textsim_db.cli.messages import Refusals, count, print_message
from textsim_db.cli.options import CorpusName, DatabaseUrl, one_of
from textsim_db.cli.progress import loading
from textsim_db.cli.settings_options import (
    ALL,
    PartialSettings,
    check_existing,
    check_settings,
    with_settings,
)
from textsim_db.errors import DatabaseError, InputError
from textsim_db.results import AddReport

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.database import Database
    from textsim_db.files.file_kinds import Kind
    from textsim_db.files.read_documents import Document, Inputs

_MANY = 1000
"""From this many documents on, their speed is worth showing."""


def _kind(text: str) -> Kind:
    from textsim_db.files.file_kinds import Kind

    return one_of(Kind, text)


@with_settings(*ALL)
def index(
    corpus: CorpusName,
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH", help='Files and folders; "-" is standard input, JSON lines.'
        ),
    ],
    settings: PartialSettings,
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
        bool, typer.Option("--create", help="Create the corpus if it does not exist.")
    ] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Add documents to a corpus, replacing those with the same key.

    A plain text file is one document, and its path is the key. Indexing the same again writes
    nothing.

    Examples: `textsim index news articles.jsonl.gz --create`,
    `textsim index code src --glob "*.py"`
    """
    from textsim_db.files.file_kinds import Kind
    from textsim_db.files.read_documents import Inputs

    _check_usage(settings, glob, create)
    refusals = Refusals()
    inputs = Inputs(paths, refusals.add, Kind(kind), key, text, glob)
    with connect(database_url) as db:
        opened, documents = _open_or_create(db, corpus, create, settings, iter(inputs))
        if opened is None:
            refusals.show()
            raise InputError(f'no document was found, so the corpus "{corpus}" was not created')
        start = time.monotonic()
        report = _index(opened, inputs, documents)
        seconds = time.monotonic() - start
    refusals.add_documents(report.refused)
    _print_report(corpus, report, refusals.count, seconds)
    refusals.show()
    if refusals.count:
        raise typer.Exit(1 if report.stored else 2)


def remove(
    corpus: CorpusName,
    keys: Annotated[list[str], typer.Argument(metavar="KEY", help="Keys of the documents.")],
    database_url: DatabaseUrl = None,
) -> None:
    """Remove documents from a corpus by key.

    Unknown keys are named and make the exit status 1, or 2 if all are unknown.

    Example: `textsim remove news article-17 article-18`
    """
    with connect(database_url) as db:
        opened = db.corpus(corpus)
        unknown = [key for key in dict.fromkeys(keys) if key not in opened]
        removed = opened.remove(keys)
    print_message(f"removed {count(removed, 'document')}", corpus=corpus, documents=removed)
    for key in unknown:
        message = f'no document "{key}" in the corpus'
        print_message(message, logging.WARNING, corpus=corpus, key=key)
    if unknown:
        raise typer.Exit(1 if removed else 2)


def _check_usage(settings: PartialSettings, glob: str, create: bool) -> None:
    """Refuse options that cannot be used, before anything is read."""
    if not glob:
        raise typer.BadParameter(
            'it is empty; expected a pattern such as "*.md"', param_hint="--glob"
        )
    if settings and not create:
        name = next(iter(settings)).replace("_", "-")
        raise typer.BadParameter("it needs --create as well", param_hint=f"--{name}")
    if settings:
        check_settings(settings)


def _open_or_create(
    db: Database,
    name: str,
    create: bool,
    settings: PartialSettings,
    documents: Iterator[Document],
) -> tuple[Corpus | None, Iterator[Document]]:
    """Return the corpus and all the documents; None if there is no corpus and no document.

    A corpus is created when the first document has been read: an empty corpus, left behind by a
    mistake in the command, would stand in the way of the corrected command.
    """
    corpus = open_corpus(db, name, create)
    if corpus is not None:
        if settings:
            check_existing(corpus, settings)
        return corpus, documents
    first = list(islice(documents, 1))
    created = db.create_corpus(name, exist_ok=True, **settings) if first else None
    return created, chain(first, documents)


def _index(corpus: Corpus, inputs: Inputs, documents: Iterator[Document]) -> AddReport:
    with loading(inputs, documents) as load:
        try:
            return corpus.add_many(load, load.after_batch)
        except (DatabaseError, KeyboardInterrupt) as error:
            error.add_note(
                f"{count(load.report.stored, 'document')} had been stored by then and stay; the "
                "same command again does only what is missing"
            )
            raise


def _print_report(corpus: str, report: AddReport, refused: int, seconds: float) -> None:
    print_message(
        _summary(report, refused, seconds),
        corpus=corpus,
        documents=report.given,
        added=report.added,
        replaced=report.replaced,
        unchanged=report.unchanged,
        refused=refused,
        seconds=round(seconds, 3),
        rate=round(report.given / max(seconds, 1e-9), 1),
    )


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
