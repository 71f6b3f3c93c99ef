"""textsim attach, detach and reconcile: which tables are kept indexed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from textsim_db.cli.change_reports import exit_if_set_aside, print_changes
from textsim_db.cli.connections import connect, open_corpus
from textsim_db.cli.messages import print_message
from textsim_db.cli.options import CorpusName, DatabaseUrl, one_of
from textsim_db.cli.output import Format, FormatOption, write
from textsim_db.cli.progress import progress
from textsim_db.errors import ConfigurationError, shown
from textsim_db.settings import Mode

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.database import Database

TableName = Annotated[
    str,
    typer.Argument(
        metavar="TABLE", help='Name of the table as SQL takes it: article, blog."Articles".'
    ),
]


def _mode(text: str) -> Mode:
    return one_of(Mode, text)


def attach(
    corpus: CorpusName,
    table: TableName,
    key: Annotated[
        str, typer.Option(help="Column with the key: unique, an integer, uuid, text or varchar.")
    ] = "id",
    text: Annotated[str, typer.Option(help="Column with the text.")] = "text",
    mode: Annotated[
        Mode,
        typer.Option(
            parser=_mode,
            metavar="|".join(Mode),
            help="queue: workers index what changes, moments later. inline: the transaction that "
            "writes a row indexes it, and takes some milliseconds longer.",
        ),
    ] = Mode.QUEUE,
    create: Annotated[
        bool, typer.Option("--create", help="Create the corpus if it does not exist.")
    ] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Keep a table indexed from now on, and index what it holds.

    What changes later is indexed by `textsim worker`, which must run.

    Example: `textsim attach news article --key id --text body --create`
    """
    with connect(database_url) as db, _opened_or_created(db, corpus, create) as opened:
        start = time.monotonic()
        with progress("indexing", "rows") as show:
            report = opened.attach(table, key, text, mode, show)
    print_changes(corpus, report, time.monotonic() - start, table=table)
    print_message(
        "what changes from now on is indexed by: textsim worker"
        if mode is Mode.QUEUE
        else "what changes is found at once; what remains to be done is done by: textsim worker"
    )
    exit_if_set_aside(report)


def detach(corpus: CorpusName, table: TableName, database_url: DatabaseUrl = None) -> None:
    """Stop keeping a table indexed; its documents stay in the corpus.

    A table that is gone is named by its oid, as the worker's messages do.

    Example: `textsim detach news article`
    """
    with connect(database_url) as db:
        db.manage(corpus).detach(table)
    message = f'table {shown(table)} is not attached to the corpus "{shown(corpus)}" any more'
    print_message(message)


def reconcile(
    corpus: CorpusName,
    check: Annotated[
        bool,
        typer.Option("--check", help="Only list what differs; exit status 1 if anything does."),
    ] = False,
    form: FormatOption = Format.TABLE,
    database_url: DatabaseUrl = None,
) -> None:
    """Make a corpus equal to its attached tables, by key and text.

    It mends what triggers cannot see: replicated rows, disabled triggers, attached partitions.
    With --check, changes that no worker has indexed yet are listed as well.

    Example: `textsim reconcile news --check`
    """
    with connect(database_url) as db:
        opened = db.corpus(corpus)
        if check:
            if write(("key", "kind"), opened.drift(), form):
                raise typer.Exit(1)
            print_message("nothing differs")
            return
        start = time.monotonic()
        with progress("comparing", "rows") as show:
            report = opened.reconcile(show)
    print_changes(corpus, report, time.monotonic() - start)
    exit_if_set_aside(report)


@contextmanager
def _opened_or_created(db: Database, name: str, create: bool) -> Iterator[Corpus]:
    """Lend a corpus; drop a new corpus again if it was created for a mistake in the command.

    A new corpus stays if the table has been attached to it.
    """
    opened = open_corpus(db, name, create)
    if opened is not None:
        yield opened
        return
    created = db.create_corpus(name)
    try:
        yield created
    except ConfigurationError:
        if not len(created):
            with suppress(ConfigurationError):
                created.drop()
        raise
