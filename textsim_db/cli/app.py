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
    compare,
    corpora,
    databases,
    dedupe,
    demo,
    documents,
    logs,
    plan,
    searches,
    sources,
    stats,
)
from textsim_db.cli.common import DatabaseUrl, complain, explain
from textsim_db.errors import TextsimError


class _Textsim(TyperGroup):
    """The root group: turns what a user can cause into a message and an exit status."""

    def get_params(self, ctx: Any) -> list[Any]:
        return [*super().get_params(ctx), *logs.options()]

    def main(self, *args: Any, **options: Any) -> Any:
        with logs.told():
            return super().main(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # Who read the output has enough; Python would complain again when it flushes at exit.
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(141) from None
        except KeyboardInterrupt as error:
            notes = getattr(error, "__notes__", [])
            complain("; ".join(["interrupted", *notes]), logging.WARNING)
            raise typer.Exit(130) from None
        except (TextsimError, OSError) as error:
            complain(explain(error), logging.ERROR)
            raise typer.Exit(2) from error
        except Exception as error:
            # Wrong usage, of which Typer would tell in its own way.
            told = getattr(error, "format_message", None)
            if told is None or not logs.chosen.json:
                raise
            complain(told(), logging.ERROR)
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
app.command("attach")(sources.attach)
app.command("detach")(sources.detach)
app.command("worker")(sources.worker)
app.command("status")(sources.status)
app.command("pending")(sources.pending)
app.command("reconcile")(sources.reconcile)
app.command("rebuild")(corpora.rebuild)
app.command("check")(databases.check)
app.add_typer(databases.app, name="db")


def _give_log_options(group: typer.Typer) -> None:
    for command in group.registered_commands:
        command.cls = logs.Command
    for part in group.registered_groups:
        if part.typer_instance is not None:
            _give_log_options(part.typer_instance)


_give_log_options(app)


def _print_version(wanted: bool) -> None:
    if wanted:
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

    Results go to standard output, messages to standard error. Exit status: 0; 1 where some input
    was refused and the rest done, or check found something; 2 where nothing could be done.
    """


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        # A key may hold what the terminal's encoding lacks.
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    app(prog_name="textsim")
