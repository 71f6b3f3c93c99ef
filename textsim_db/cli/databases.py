"""textsim db and textsim check: the schema, the address, the embedded server, the integrity."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import typer

from textsim_db.cli.messages import (
    common_options,
    confirm,
    print_message,
    print_object,
    print_result,
)
from textsim_db.cli.opening import connect, name_origin, skip_unreadable
from textsim_db.cli.output import Format, write
from textsim_db.cli.progress_lines import progress
from textsim_db.cli.warm import compile_kernels
from textsim_db.errors import (
    ConfigurationError,
    DatabaseError,
    DatabaseUnavailable,
    RecipeError,
    lacks_right,
)
from textsim_db.results import Problem
from textsim_db.results.shown_values import count, shown

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from textsim_db.corpus.database import Database

_PROBLEM = ("corpus", "kind", "subject", "detail", "remedy")
_Row = tuple[str, str, str, str, str]
app = typer.Typer(
    no_args_is_help=True,
    help="Install the schema; print the address; stop the embedded PostgreSQL.",
)


@app.command()
def install(*, no_warm: bool = False, database_url: str | None = None) -> None:
    """Install the schema textsim in a database, or bring the schema to this version.

    If functions, views or indexes of the schema are missing or changed, it creates them again. It prints
    the revision, and compiles all kernels as textsim warm does. The role owns the schema: SELECT
    textsim.grant_reader('role') and textsim.grant_writer('role') give rights to other roles.

    Args:
        no_warm: Compile no kernels; the first commands that need them do.

    Example: `textsim db install --database-url postgresql://user@host/name`
    """
    from textsim_db.db import schema

    with _engine(database_url) as engine:
        revision = schema.upgrade(engine)
    print_result(f"the schema textsim is at revision {revision}", revision=revision)
    if not no_warm:
        compile_kernels(database_url)


@app.command()
def uninstall(*, yes: bool = False, database_url: str | None = None) -> None:
    """Remove the schema and all corpora. An older version of textsim-db works with the newer schema.

    It asks before. Without a terminal it needs --yes.

    Example: `textsim db uninstall --yes`
    """
    from textsim_db.db import schema
    from textsim_db.db.addresses import public_url

    with _engine(database_url) as engine:
        name = public_url(engine.url)
        confirm(f"remove the schema textsim in {name}, with all corpora", yes)
        schema.downgrade(engine)
    print_result("the schema textsim is removed", database=name)


def check(
    corpus: str | None = None,
    /,
    *,
    form: Format = Format.TABLE,
    database_url: str | None = None,
) -> None:
    """Check the integrity of a corpus: its objects, settings, stored rows and attached tables.

    All rows are read. It prints the problems, and what mends them. A table has one line for more than
    three problems of a kind, with their number and the first; other formats have all. If an object of
    the schema is missing or changed, it prints that instead and reads no corpus. Exit status 1 if there
    are any problems. A message counts the judgements of texts that have changed since, which nothing
    obeys.

    Args:
        corpus: Name of the corpus. Default: every corpus.

    Examples:
    - `textsim check`
    - `textsim check news --format jsonl`

    """
    from textsim_db.read import check_catalog

    with connect(database_url) as db:
        rows = [("", *problem) for problem in check_catalog.check_installation(db.engine)]
        if rows:
            _write_problems(rows, form)
            print_message("mend the schema first; no corpus was checked", logging.WARNING)
            raise typer.Exit(1)
        for each in db.corpora() if corpus is None else [corpus]:
            with skip_unreadable(db, each) if corpus is None else nullcontext():
                rows += _problem_rows(db, each)
    _write_problems(rows, form)
    if rows:
        raise typer.Exit(1)


_MOST_ALIKE = 3
"""The problems of a kind that a table lists one by one."""


def _write_problems(rows: list[_Row], form: Format) -> None:
    if form is not Format.TABLE:
        write(_PROBLEM, rows, form)
        return
    alike: dict[tuple[str, str, str], list[_Row]] = {}
    for row in rows:
        corpus, kind, subject, _, remedy = row
        # A remedy may name the document.
        alike.setdefault((corpus, kind, remedy.replace(subject, "")), []).append(row)
    lines = []
    for group in alike.values():
        shown_rows = group if len(group) <= _MOST_ALIKE else group[:1]
        number = "" if len(group) <= _MOST_ALIKE else f"{len(group):,}, such as"
        lines += [(*row[:2], number, *row[2:]) for row in shown_rows]
    write((*_PROBLEM[:2], "number", *_PROBLEM[2:]), lines, form)
    if len(lines) < len(rows):
        print_message("textsim check --format jsonl lists each problem")


@app.command()
def sql(*, no_transaction: bool = False) -> None:
    """Print the schema as one SQL script, for psql or a migration; no database is needed.

    Args:
        no_transaction: Without BEGIN and COMMIT, for a migration that has a transaction.

    Examples:
    - `textsim db sql | psql -X -q -v ON_ERROR_STOP=1 "$TEXTSIM_DATABASE_URL"`
    - `textsim db sql --no-transaction > textsim.sql`

    """
    from textsim_db.db import schema

    script = schema.script(not no_transaction)
    if common_options.json:
        print_object({"sql": script})
    else:
        typer.echo(script, nl=False)


@app.command()
def url(*, database_url: str | None = None) -> None:
    """Print the address of the database for psql and other clients, password included.

    The embedded PostgreSQL gets the schema before. In a shell: psql "$(textsim db url)"

    Example: `textsim db url`
    """
    from textsim_db.db.addresses import plain_url

    with _engine(database_url, embedded_schema=True) as engine:
        address = plain_url(engine.url)
    if common_options.json:
        print_object({"url": address})
    else:
        typer.echo(address)


@app.command()
def stop() -> None:
    """Stop the embedded PostgreSQL; the next command that needs it starts it again.

    Example: `textsim db stop`
    """
    from textsim_db.db import embedded_server

    stopped = embedded_server.stop()
    outcome = "was stopped" if stopped else "was not running"
    print_result(f"the embedded PostgreSQL {outcome}", is_stopped=stopped)


@contextmanager
def _engine(database_url: str | None, embedded_schema: bool = False) -> Iterator[Engine]:
    """Lend an engine; embedded_schema: the embedded PostgreSQL gets the schema if it is missing."""
    from textsim_db.corpus.database import resolve
    from textsim_db.db import schema

    with name_origin(database_url, ConfigurationError):
        engine, _, is_embedded = resolve(database_url, f"textsim-db {common_options.command}")
    try:
        with name_origin(database_url, DatabaseUnavailable):
            if embedded_schema and is_embedded:
                schema.ensure_installed(engine)
            yield engine
    finally:
        engine.dispose()


def _problem_rows(db: Database, name: str) -> list[_Row]:
    try:
        corpus = db.corpus(name)
        with progress("checking", "documents") as show:
            total = len(corpus)
            problems = corpus.check(lambda done: show(done, total))
        documents = len(corpus)
    except (RecipeError, DatabaseError) as error:
        return [(name, *problem) for problem in _problems_without_rows(db, name, error)]
    outcome = count(len(problems), "problem") if problems else "nothing wrong"
    print_message(
        f'corpus "{name}": {count(documents, "document")}, {outcome}',
        logging.WARNING if problems else logging.INFO,
        corpus=name,
        problems=len(problems),
    )
    stale = 0 if problems else sum(judgement.is_stale for judgement in corpus.judgements())
    if stale:
        print_message(
            f"{count(stale, 'judgement')} not obeyed, because a text has changed since; to judge the "
            f"pairs again, see is_stale: textsim judgements list {shlex.quote(name)} --format jsonl"
        )
    return [(name, *problem) for problem in problems]


def _problems_without_rows(
    db: Database, name: str, error: RecipeError | DatabaseError
) -> list[Problem]:
    """Return why the rows of a corpus cannot be read, such as a changed setting or a lost table."""
    import psycopg

    from textsim_db.db import stored_corpus
    from textsim_db.db.engine import is_trouble
    from textsim_db.read import check_catalog
    from textsim_db.settings.corpus_settings import NEWER_VERSION, other_build

    try:
        stored = stored_corpus.load_unchecked(db.engine, name)
    except RecipeError:  # of a setting that only a newer version knows
        return [Problem("setting", name, str(error), NEWER_VERSION)]
    if problems := check_catalog.check_objects(db.engine, stored):
        return problems
    if isinstance(error, DatabaseError):
        cause = error.__cause__
        if lacks_right(error) or not isinstance(cause, psycopg.Error) or is_trouble(cause):
            raise error
        return [Problem("corpus", name, str(error), "mend the cause, and check the corpus again")]
    remedy = f"textsim corpus drop {shown(name)}, then create and index it again"
    if other := other_build(name, stored.config.recipe, stored.config.guard_lists):
        _, remedy = other
    return [Problem("recipe", name, str(error), remedy)]
