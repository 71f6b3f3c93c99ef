"""Opens what commands need: the database, its corpora, and a file or standard input as one text."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from textsim_db.cli.messages import common_options, print_message
from textsim_db.cli.options import misused
from textsim_db.errors import (
    ConfigurationError,
    CorpusNotFound,
    DatabaseError,
    DatabaseUnavailable,
    RecipeError,
    lacks_object,
    lacks_right,
)
from textsim_db.files.file_kinds import STDIN, Kind, kind_of
from textsim_db.results.shown_values import shown

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.corpus.database import Database


Result = TypeVar("Result")


def connect(database_url: str | None, is_brief: bool = True) -> Database:
    """Open the database of the options; pg_stat_activity shows the name of the command."""
    from textsim_db.corpus import database

    open_database = database.connect_briefly if is_brief else database.connect
    with name_origin(database_url, ConfigurationError, DatabaseUnavailable):
        return open_database(database_url, f"textsim-db {common_options.command}".rstrip())


@contextmanager
def name_origin(database_url: str | None, *errors: type[Exception]) -> Iterator[None]:
    """Add to these errors where the address of the database comes from."""
    from textsim_db.corpus.database import URL_VARIABLE

    try:
        yield
    except errors as error:
        if database_url:
            error.add_note("the address comes from --database-url")
        elif os.environ.get(URL_VARIABLE):
            error.add_note(f"the address comes from {URL_VARIABLE}")
        raise


def open_corpus(db: Database, name: str, create: bool) -> Corpus | None:
    """Open a corpus; return None if it does not exist and the command may create it."""
    try:
        return db.corpus(name)
    except CorpusNotFound as error:
        if create:
            return None
        if is_file_name(name):
            error.add_note("this is the name of a file; the name of the corpus comes first")
        else:
            error.add_note(f"to create it, add --create, or run: textsim corpus create {name}")
        raise


@contextmanager
def opened_or_created(db: Database, name: str, create: bool, has_scope: bool) -> Iterator[Corpus]:
    """Lend a corpus, which is created if it does not exist."""
    opened = open_corpus(db, name, create)
    if opened is not None:
        yield opened
        return
    created = db.create_corpus(name, scoped=has_scope)
    try:
        yield created
    except ConfigurationError:
        if not len(created):
            with suppress(ConfigurationError):
                db.drop_corpus(name)
        raise


def each_corpus(
    db: Database, name: str | None, read: Callable[[Corpus], Result], damaged: list[str]
) -> Iterator[tuple[Corpus, Result]]:
    """Read one corpus, or without a name every corpus that this role may read.

    damaged: gets the names of the corpora that are skipped because a table or a function is missing.
    """
    if name is not None:
        corpus = db.corpus(name, on_server=True)
        yield corpus, read(corpus)
        return
    for each in db.corpora():
        with skip_unreadable(db, each):
            try:
                corpus = db.corpus(each, on_server=True)
                result = read(corpus)
            except RecipeError as error:
                print_message(f"skipped: {error}", logging.WARNING, corpus=each)
            except DatabaseError as error:
                if not lacks_object(error) or each not in db.corpora():
                    raise
                damaged.append(each)
                message = f'skipped: corpus "{shown(each)}" is damaged, and textsim check says how'
                print_message(f"{message}: {error}", logging.WARNING, corpus=each)
            else:
                yield corpus, result


@contextmanager
def skip_unreadable(db: Database, name: str) -> Iterator[None]:
    """Skip a corpus that was dropped meanwhile, or that this role may not read."""
    try:
        yield
    except (CorpusNotFound, DatabaseError) as error:
        if name not in db.corpora():
            return
        if not lacks_right(error):
            raise
        message = f'skipped: this role may not read the corpus "{shown(name)}"'
        print_message(message, logging.WARNING, corpus=name)


def is_file_name(text: str) -> bool:
    """Return whether a file has this name; it may be a pipe."""
    return os.path.exists(text) and not os.path.isdir(text)


def read_one_text(name: str, action: str) -> str:
    """Return the text of a file; if the name is that of a file of records, say what happens to it."""
    from textsim_db.files.read_documents import read_text

    text = read_text(name)
    if name != STDIN and kind_of(name) is not Kind.TEXT:
        print_message(f"{shown(name)} is {action} as one text, not document by document")
    return text


def searched_text(text: str | None, file: str | None) -> str:
    if (text is None) == (file is None):
        raise misused("TEXT", "give either a text or --file")
    name = "-" if text == "-" else file
    if text is not None and is_file_name(text):
        print_message(f"the text is the name of a file; to search for its content: --file {text}")
    return read_one_text(name, "searched for") if name is not None else str(text)
