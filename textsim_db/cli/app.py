"""The command textsim itself: its groups, its global options, and how it ends."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from textsim_db import __version__
from textsim_db.cli import (
    attach,
    compare,
    corpora,
    databases,
    dedupe,
    demo,
    doctor,
    documents,
    logs,
    plan,
    searches,
    stats,
    status,
    worker,
)
from textsim_db.cli.messages import explain, print_message
from textsim_db.cli.options import DatabaseUrl
from textsim_db.errors import TextsimError


class _Textsim(TyperGroup):
    """The root group: turns errors that a user can cause into a message and an exit status."""

    def get_params(self, ctx: Any) -> list[Any]:
        return [*super().get_params(ctx), *logs.options()]

    def main(self, *args: Any, **options: Any) -> Any:
        with logs.log_to_stderr():
            return super().main(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader of the output is gone; Python would report it again when it flushes at exit.
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(141) from None
        except KeyboardInterrupt as error:
            notes = getattr(error, "__notes__", [])
            print_message("; ".join(["interrupted", *notes]), logging.WARNING)
            raise typer.Exit(130) from None
        except (TextsimError, OSError) as error:
            print_message(explain(error), logging.ERROR)
            raise typer.Exit(2) from error
        except Exception as error:
            # Typer prints wrong usage in its own way.
            format_message = getattr(error, "format_message", None)
            if format_message is None or not logs.log_options.json:
                raise
            print_message(format_message(), logging.ERROR)
            raise typer.Exit(2) from error
        return result


app = typer.Typer(
    cls=_Textsim,
    name="textsim",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.add_typer(corpora.app, name="corpus")
app.command("index")(documents.index)
app.command("remove")(documents.remove)
app.command("query")(searches.query)
app.command("neighbours")(searches.neighbours)
app.command("pairs")(searches.pairs)
app.command("clusters")(searches.clusters)
app.command("plan")(plan.plan)
app.command("stats")(stats.stats)
app.command("compare")(compare.compare)
app.command("dedupe")(dedupe.dedupe)
app.command("attach")(attach.attach)
app.command("detach")(attach.detach)
app.command("worker")(worker.worker)
app.command("status")(status.status)
app.command("pending")(status.pending)
app.command("reconcile")(attach.reconcile)
app.command("rebuild")(corpora.rebuild)
app.command("check")(databases.check)
app.command("doctor")(doctor.doctor)
app.add_typer(databases.app, name="db")


def _add_log_options(group: typer.Typer) -> None:
    for command in group.registered_commands:
        command.cls = logs.Command
    for part in group.registered_groups:
        if part.typer_instance is not None:
            _add_log_options(part.typer_instance)


_add_log_options(app)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"textsim-db {__version__}")
        raise typer.Exit


@app.callback()
def root(
    database_url: DatabaseUrl = None,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Find near-duplicate texts in PostgreSQL.

    Without --database-url and TEXTSIM_DATABASE_URL, an embedded PostgreSQL is started for you.

    Try it on the Python standard library: `textsim demo`

    Results go to standard output, messages to standard error. Exit status: 0; 1 if some input
    was refused and the rest done, or if check found something; 2 if nothing could be done.
    """


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        # A key may hold what the terminal's encoding lacks.
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    app(prog_name="textsim")
