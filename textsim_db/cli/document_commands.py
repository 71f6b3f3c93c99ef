"""textsim index and remove: documents from files or from a query, and what became of them."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import typer

from textsim_db.cli import options
from textsim_db.cli.declare import with_settings
from textsim_db.cli.messages import Refusals, confirm, print_message, print_result
from textsim_db.cli.opening import connect, open_corpus
from textsim_db.cli.operations import Call, Operation
from textsim_db.cli.progress_lines import Measured, loading, speed
from textsim_db.errors import ConfigurationError, DatabaseError, InputError
from textsim_db.files.file_kinds import STDIN, FileFormat
from textsim_db.results import AddReport, Rejected, StoredKey
from textsim_db.results.shown_values import count, shown
from textsim_db.settings.corpus_settings import SETTINGS

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.corpus.database import Database


_RESULTS_AT_ONCE = 1000


def _rows_of_query(db: Database, query: str, scoped: bool) -> Iterator[tuple[Any, ...]]:
    """Yield the rows (key, text) or (key, text, scope) of a query, as they come."""
    from textsim_db.db.engine import database_errors, transaction

    with (
        database_errors(),
        transaction(db.engine) as connection,
        connection.cursor("textsim_query") as cursor,
    ):
        connection.execute("SET TRANSACTION READ ONLY")
        cursor.execute(query.encode())
        columns = len(cursor.description or ())
        if columns != (3 if scoped else 2):
            expected = "key, text and scope" if scoped else "key and text"
            raise InputError(f"the query returns {columns} columns; expected {expected}")
        while rows := cursor.fetchmany(_RESULTS_AT_ONCE):
            yield from rows


_SHOWN_TWINS = 20


def add_documents(
    corpus: Corpus, measured: Measured, documents: Iterable[tuple[Any, ...]]
) -> AddReport:
    with loading(measured) as load:
        try:
            return corpus.add_many(documents, load.after_batch)
        except (DatabaseError, KeyboardInterrupt, SystemError) as error:
            error.add_note(
                f"{count(load.report.stored, 'document')} were stored and stay; repeat the command "
                "to add the other documents"
            )
            raise


def print_report(corpus: str, report: AddReport, refusals: Refusals, seconds: float) -> None:
    print_result(
        _summary(report, refusals.count, seconds),
        corpus=corpus,
        documents=report.received,
        added=report.added,
        replaced=report.replaced,
        unchanged=report.unchanged,
        without_words=report.without_words,
        refused=refusals.count,
        twins=len(report.twins),
        seconds=round(seconds, 3),
        rate=round(report.received / max(seconds, 1e-9), 1),
    )
    if report.some_repeated:
        names = ", ".join(f'"{key}"' for key in report.some_repeated)
        print_message(shown(f"keys that came again, such as {names}"), logging.WARNING)
    if report.without_words:
        print_message(without_words_note(report.without_words))
    refusals.show()
    _show_twins(report)


def without_words_note(number: int) -> str:
    verb = "matches" if number == 1 else "match"
    return f"{count(number, 'document')} without words {verb} nothing"


def _show_twins(report: AddReport) -> None:
    for key, standing, similarity in report.twins[:_SHOWN_TWINS]:
        message = (
            f'left out: document "{key}" matches "{standing}" with similarity {similarity:.3f}'
        )
        fields = {"key": key, "standing": standing, "similarity": similarity}
        print_message(shown(message), logging.WARNING, **fields)
    if len(report.twins) > _SHOWN_TWINS:
        print_message(f"... and {len(report.twins) - _SHOWN_TWINS:,} more", logging.WARNING)


def _summary(report: AddReport, refused: int, seconds: float) -> str:
    counts = [
        f"{report.added:,} added",
        f"{report.replaced:,} replaced",
        f"{report.unchanged:,} unchanged",
    ]
    if report.repeated_keys:
        counts.append(f"{report.repeated_keys:,} with a repeated key (the last document stays)")
    if report.twins:
        counts.append(f"{len(report.twins):,} left out")
    if refused:
        counts.append(f"{refused:,} refused")
    return f"{', '.join(counts)}; {seconds:.1f} s{speed(report.received, seconds)}"


@with_settings(*SETTINGS)
def index(
    corpus: str,
    paths: list[str] | None = None,
    /,
    *,
    settings: options.PartialSettings,
    query: str | None = None,
    form_of_files: FileFormat,
    key_columns: list[str] | None = None,
    text: str = "text",
    scope_columns: list[str] | None = None,
    glob: str = "*",
    create: bool = False,
    database_url: str | None = None,
) -> None:
    """Add documents to a corpus; a document with a known key replaces the stored document.

    A plain text file is one document, with its path as the key. Unchanged documents are not written
    again. It prints how many documents were added, replaced, unchanged and refused. If a key comes again
    in one call, its last document stays: the command counts these documents, names some of the keys, and
    exits with status 0. A unique corpus leaves out documents that match others. Then the command lists
    them, and exits with status 1.

    Args:
        paths: Files and folders; "-" is standard input, with JSON lines.
        query (SQL): Read a query of the database instead of files. Its columns are the key and the text,
            and with --scope the scope.
        kind: Format of the files. auto: .jsonl, .json, .csv, .tsv and .parquet are read as such, any
            other file is one document, except JSON, which is refused with the command that reads it.
            Each may also be packed: .gz, .bz2, .xz or .zst.

    Examples:
    - `textsim index news articles.jsonl.gz --create`
    - `textsim index news articles.csv --key nr --text body`
    - `textsim index code src --glob "*.py" --create --shingle word:5`
    - `textsim index notes notes.jsonl --scope user --create`
    - `textsim index news --query "SELECT id, body FROM article WHERE published"`

    """
    from textsim_db.files.read_documents import Inputs
    from textsim_db.text.languages import check_installed

    scope = scope_columns or []
    if create and scope:
        settings = {"scoped": True} | settings
    _check_usage(settings, create, scope)
    if not paths and query is None:
        raise options.misused("PATH", 'name a file, a folder, "-" or --query')
    if paths and query is not None:
        raise options.misused("--query", "it reads no files; leave out one of the two")
    refusals = Refusals()
    keys = key_columns or ["id"]
    files = Inputs(paths or [], refusals.add, form_of_files, keys, text, scope, glob)
    files.check_packages()
    if "language" in settings:
        check_installed()
    with connect(database_url) as db:
        inputs = iter(files) if query is None else _rows_of_query(db, query, bool(scope))
        opened, documents = _open_or_create(db, corpus, create, settings, inputs)
        if opened is None:
            refusals.show()
            raise InputError(
                f'the corpus "{corpus}" was not created, because the input has no document'
            )
        _check_scope(opened, scope)
        start = time.monotonic()
        report = add_documents(opened, files, documents)
        seconds = time.monotonic() - start
    refusals.add_documents(report.refused)
    print_report(corpus, report, refusals, seconds)
    if refusals.count or report.twins:
        raise typer.Exit(1 if report.stored or report.twins else 2)


KEYS = Operation(
    "keys",
    """List the keys of the documents of a corpus, in byte order.

    `records` is the number of records that textsim dedupe --add has taken for the document.

    Examples:
    - `textsim keys news`
    - `textsim keys news --prefix week-7/ --format jsonl`
    """,
    columns=StoredKey._fields,
    noun="document",
    computes=False,
)


REJECT = Operation(
    "reject",
    """Reject the text of a document of a unique corpus, so that it does not come back.

    Texts like it are kept out from then on, with the reason. `textsim remove` of the key that it prints
    ends that.

    Example: `textsim reject posts 17 "spam, by the report of a reader"`
    """,
    show=lambda call: print_result(
        f'"{shown(call.result)}" keeps texts like it out of the corpus',
        corpus=call.corpus.name,
        key=call.result,
    ),
    computes=False,
)
REJECTED = Operation(
    "rejected",
    """List the rejected documents of a unique corpus.

    Example: `textsim rejected posts`
    """,
    columns=Rejected._fields,
    noun="rejected document",
    computes=False,
)


def remove(
    corpus: str,
    keys: list[str] | None = None,
    /,
    *,
    prefix: str | None = None,
    source: str | None = None,
    scope: str | None = None,
    language: str | None = None,
    yes: bool = False,
    database_url: str | None = None,
) -> None:
    """Remove documents from a corpus.

    Of several conditions all must hold; textsim keys lists what they choose. It prints how many
    documents were removed, and the unknown keys. Records that textsim dedupe --add dropped in favour of
    these documents do not come back by themselves, so it prints how many there are. Exit status 1 if
    some keys are unknown, 2 if all are.

    Args:
        keys: Keys of the documents; "-" reads keys from standard input, one a line.
        prefix: Instead of keys: all keys that begin with this text.
        source (TABLE): Instead of keys: the documents of this attached table.
        scope: Instead of keys: the documents of this scope.
        language: Instead of keys: the documents in this language.

    Examples:
    - `textsim remove news article-17 article-18`
    - `textsim remove news --prefix week-7/`
    - `textsim remove news - < keys.txt`

    """
    are_chosen = not all(each is None for each in (prefix, source, scope, language))
    if are_chosen == bool(keys):
        raise options.misused("KEY", "give keys, or --prefix, --source, --scope or --language")
    unknown: list[str] = []
    with connect(database_url) as db:
        opened = db.corpus(corpus, on_server=True)
        if are_chosen:
            chosen = opened.keys(prefix or "", source=source, scope=scope, language=language)
            records = {each.key: each.records for each in chosen}
            action = f'remove {count(len(records), "document")} of the corpus "{shown(corpus)}"'
            confirm(action, yes)
        else:
            wanted = dict.fromkeys(_with_standard_input(keys or []))
            records = opened._records_of(list(wanted))
            unknown = [key for key in wanted if key not in records]
        removed = opened.remove(records)
    behind = sum(records.values()) - len(records)
    print_result(
        f"removed {count(removed, 'document')}",
        corpus=corpus,
        documents=removed,
        unknown=unknown,
        records_behind=behind,
    )
    if behind:
        print_message(
            f"{count(behind, 'record')} dropped in favour of them by dedupe --add; to get those back, "
            "add their files again"
        )
    for key in unknown:
        message = f'no document "{key}" in the corpus'
        print_message(message, logging.WARNING, corpus=corpus, key=key)
    if unknown:
        raise typer.Exit(1 if removed else 2)


def _with_standard_input(keys: list[str]) -> Iterator[str]:
    for key in keys:
        if key == STDIN:
            yield from filter(None, (line.rstrip("\r\n") for line in sys.stdin))
        else:
            yield key


def _show_forgotten(call: Call) -> None:
    report, is_later = call.result, call.arguments["later"]
    counts = {name: getattr(report, name) for name in ("documents", "judgements", "events")}
    entries = count(report.log_entries, "log entry", "log entries")
    nouns = ("document", "judgement", "event")
    removed = ", ".join([*map(count, counts.values(), nouns), entries])
    print_result(
        f"removed {removed}",
        corpus=call.corpus.name,
        **counts,
        log_entries=report.log_entries,
        has_words=report.has_words,
        to_run=report.to_run,
        out_of_reach=report.out_of_reach,
    )
    if report.has_words and is_later:
        print_message(f"the words go with the next rebuild: textsim rebuild {call.corpus.name}")
    elif report.has_words:
        print_message(
            "the corpus was rebuilt, but a transaction may read the replaced corpus, which has the "
            "words; textsim worker drops it when the transaction has ended",
            logging.WARNING,
        )
    else:
        print_message("the corpus was rebuilt; no relation of it has the words")
    for statement in report.to_run:
        print_message(f"another transaction held it up; run: {statement}", logging.WARNING)
    for place in report.out_of_reach:
        print_message(f"out of reach: {place}")
    if report.to_run or (report.has_words and not is_later):
        raise typer.Exit(1)


FORGET = Operation(
    "forget",
    """Remove documents, and all that the database keeps of them.

    The documents go at once, with their judgements, notes, events, log entries and merged rows. Then the
    corpus is rebuilt without their words, beside readers and writers. A document whose row stands in an
    attached table is refused: delete the row first. The receipt says what was removed, and where the
    texts may still be. The exit status is 1 if another transaction held the rest up.

    Examples:
    - `textsim forget news article-17 article-18`
    - `textsim forget tickets --scope customer-7 --later`

    """,
    arguments=("keys",),
    asks='forget documents of the corpus "{corpus}" without naming their keys',
    asks_for=("scope", "all_expired", "all_removed"),
    progress=("rebuilding", "documents"),
    show=_show_forgotten,
    computes=False,
)
EXPIRE = Operation(
    "expire",
    """Remove the documents of a corpus whose time is over.

    Searches do not find them in any case. A worker removes them an hour later. It prints how many
    documents were removed.

    Example: `textsim expire chat`
    """,
    done="removed {documents}",
    progress=("removing", "documents"),
    computes=False,
)


def _check_usage(settings: options.PartialSettings, create: bool, scope: list[str]) -> None:
    if settings and not create:
        raise options.misused(
            options.flag_of(next(iter(settings))),
            "settings are for a new corpus: give --create, or change them with textsim rebuild",
        )
    if settings:
        options.complete(settings)
    if settings.get("scoped") and not scope:
        raise options.misused(
            "--scoped", "name the column, or the member in JSON, of the scopes with --scope"
        )


def _check_scope(corpus: Corpus, scope: list[str]) -> None:
    """Raise ConfigurationError before the first of many records would be refused."""
    try:
        corpus.config.check_scope(corpus.name, bool(scope))
    except ConfigurationError as error:
        if corpus.config.scoped:
            error.add_note(
                "the option --scope names the column, or the member in JSON, of the scopes"
            )
        raise


def _open_or_create(
    db: Database,
    name: str,
    create: bool,
    settings: options.PartialSettings,
    documents: Iterator[Any],
) -> tuple[Corpus | None, Iterator[Any]]:
    """Return the corpus and all documents; None if there is neither a corpus nor a document.

    A corpus is created only after the first document has been read. Otherwise a mistake in the command
    would leave an empty corpus, with which the corrected command might conflict.
    """
    corpus = open_corpus(db, name, create)
    if corpus is not None:
        if settings:
            options.check_existing(corpus, settings)
        return corpus, documents
    first = list(islice(documents, 1))
    created = db.create_corpus(name, exist_ok=True, **settings) if first else None
    return created, chain(first, documents)
