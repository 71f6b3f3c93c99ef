"""The command textsim itself: its groups, its global options, and how it ends."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from textsim_db import __version__
from textsim_db.cli import (
    command_types,
    corpora,
    databases,
    dedupe,
    demo,
    doctor,
    document_commands,
    judgement_commands,
    options,
    passage_commands,
    plan,
    search_commands,
    service_commands,
    source_commands,
    statistics_commands,
    status_commands,
    text_commands,
    warm,
)
from textsim_db.cli.declare import as_command, read_help
from textsim_db.cli.messages import common_options, explain, log_to_stderr, print_message
from textsim_db.cli.operations import Operation, operation_command
from textsim_db.errors import TextsimError

_FIRST_STEPS = """\
textsim finds near-duplicate texts, in files and in PostgreSQL.

  Remove the near-duplicates of a file:
    textsim dedupe articles.jsonl -o unique.jsonl

  Store documents in a corpus, here "news":
    textsim index news articles.jsonl --create

  List the documents that are similar to a text:
    textsim query news "the text to look for"

  Keep a table of yours indexed, with textsim worker in another terminal:
    textsim attach blog article --key id --text body --create

No server is needed: without an address, an embedded PostgreSQL starts by itself.

  textsim demo            try it on the Python standard library
  textsim doctor          check the installation and the database
  textsim --help          list all commands
  textsim COMMAND --help  explain one command, with examples
"""
"""The text of textsim without a command: the four commands to begin with."""


class CommandGroup(command_types.SubcommandGroup):
    """The root group: turns errors that a user can cause into messages and exit statuses."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help without Rich, whose import takes as long as everything else."""
        super(TyperGroup, self).format_help(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        commands: Any = self.commands
        for panel in dict.fromkeys(command.rich_help_panel for command in commands.values()):
            with formatter.section(panel):
                formatter.write_dl(
                    (name, command.get_short_help_str(200))
                    for name, command in commands.items()
                    if command.rich_help_panel == panel
                )

    def get_params(self, ctx: Any) -> list[Any]:
        return [
            *super().get_params(ctx),
            *command_types.declared_by(command_types.declare_log_options),
        ]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        command_types.check_repeated(self, ctx, args)
        return super().parse_args(ctx, args)

    def main(self, *args: Any, **options: Any) -> Any:
        with log_to_stderr(), _interrupted_by_sigterm():
            return super().main(*args, **options)

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _wrong_usage():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with _wrong_usage():
            return self._invoke(ctx)

    def _invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # Python would report the broken pipe again when it flushes at exit.
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(141) from None
        except (KeyboardInterrupt, SystemError, TextsimError, OSError) as error:
            if is_interrupt(error):
                notes = getattr(error, "__notes__", [])
                print_message("; ".join(["interrupted", *notes]), logging.WARNING)
                raise typer.Exit(143 if is_interrupt(error, _Terminated) else 130) from None
            if isinstance(error, SystemError):
                raise
            print_message(explain(error), logging.ERROR)
            raise typer.Exit(2) from error
        return result


@contextlib.contextmanager
def _wrong_usage() -> Iterator[None]:
    """Print errors of usage as all other errors; Typer would draw a frame around them."""
    try:
        yield
    except Exception as error:
        format_message = getattr(error, "format_message", None)
        # A group of commands without a command prints its help.
        is_help = type(error).__name__ == "NoArgsIsHelpError" and not common_options.log_json
        if format_message is None or is_help:
            raise
        text, context = format_message().rstrip("."), getattr(error, "ctx", None)
        way_out = f" (see {context.command_path} --help)" if context else ""
        print_message(f"{text[:1].lower()}{text[1:]}{way_out}", logging.ERROR)
        raise typer.Exit(2) from error


class _Terminated(KeyboardInterrupt):
    """The process got SIGTERM."""


@contextlib.contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """Let SIGTERM interrupt a command as Ctrl-C does, so that its statements on the server end."""

    def interrupt(number: int, frame: object) -> None:
        raise _Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def is_interrupt(
    error: BaseException | None, kind: type[KeyboardInterrupt] = KeyboardInterrupt
) -> bool:
    """Return whether an error is an interrupt (Ctrl-C), or was raised while an interrupt was handled.

    A kernel that makes its result raises a SystemError then. A connection that has just sent a statement
    refuses the ROLLBACK.
    """
    while error is not None and not isinstance(error, kind):
        error = error.__context__
    return error is not None


app = typer.Typer(
    cls=CommandGroup,
    name="textsim",
    invoke_without_command=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
_GROUPS: dict[str, dict[str, Callable[..., None] | Operation | typer.Typer]] = {
    "Begin with": {
        "dedupe": dedupe.dedupe,
        "index": document_commands.index,
        "query": search_commands.QUERY,
        "neighbours": search_commands.NEIGHBOURS,
        "pairs": search_commands.PAIRS,
        "clusters": search_commands.CLUSTERS,
        "attach": source_commands.ATTACH,
        "worker": service_commands.worker,
        "status": status_commands.status,
        "rebuild": corpora.rebuild,
    },
    "Add": {
        "remove": document_commands.remove,
        "reject": document_commands.REJECT,
        "rejected": document_commands.REJECTED,
        "corpus": corpora.app,
    },
    "Search": {
        "quote": passage_commands.QUOTE,
        "quotations": passage_commands.quotations,
        "passages": passage_commands.PASSAGES,
        "regions": passage_commands.REGIONS,
        "contamination": passage_commands.contamination,
        "mcp": service_commands.mcp,
    },
    "Group": {
        "track": search_commands.TRACK,
        "members": search_commands.MEMBERS,
        "untrack": search_commands.UNTRACK,
    },
    "Judge": {
        "judge": judgement_commands.JUDGE,
        "doubtful": judgement_commands.DOUBTFUL,
        "review": judgement_commands.review,
        "compare": text_commands.compare,
        "judgements": judgement_commands.app,
    },
    "Attach": {
        "merge": source_commands.MERGE,
        "unmerge": source_commands.UNMERGE,
        "detach": source_commands.DETACH,
        "reconcile": source_commands.RECONCILE,
        "pending": status_commands.pending,
    },
    "Keep": {
        "expire": document_commands.EXPIRE,
        "forget": document_commands.FORGET,
        "check": databases.check,
        "plan": plan.plan,
    },
    "Look inside": {
        "keys": document_commands.KEYS,
        "stats": statistics_commands.stats,
        "boilerplate": statistics_commands.BOILERPLATE,
        "identify": text_commands.identify,
    },
    "Install": {
        "demo": demo.demo,
        "doctor": doctor.doctor,
        "warm": warm.warm,
        "db": databases.app,
    },
}
"""The commands in the groups of the methods (CORPUS in scripts/python_reference), ten to begin with."""
for _group, _commands in _GROUPS.items():
    for _name, _command in _commands.items():
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name=_name, rich_help_panel=_group)
            continue
        _function = operation_command(_command) if isinstance(_command, Operation) else _command
        app.command(_name, rich_help_panel=_group)(_function)


_WITHOUT_JSON = {"dedupe", "demo", "mcp", "review"}
"""Commands whose result is a file, a text for people, a page, or answers to a model."""


def _add_common_options(group: typer.Typer) -> None:
    for command in group.registered_commands:
        function = command.callback
        assert function
        if not hasattr(function, "load"):
            command.callback = as_command(function)
        command.cls = (
            command_types.Command if command.name in _WITHOUT_JSON else command_types.JsonCommand
        )
    for each in group.registered_groups:
        each.cls = command_types.SubcommandGroup
        if each.typer_instance is not None:
            _add_common_options(each.typer_instance)


_add_common_options(app)


_ADDRESS = read_help(options.SHARED)["database_url"].text


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"textsim-db {__version__}")
        raise typer.Exit


@app.callback()
def root(
    ctx: typer.Context,
    database_url: Annotated[
        str | None, typer.Option("--database-url", metavar="URL", help=_ADDRESS)
    ] = None,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Find near-duplicate texts, in files and in PostgreSQL.

    Without --database-url and TEXTSIM_DATABASE_URL, an embedded PostgreSQL starts by itself.

    Results go to standard output, messages to standard error.

    Exit status: 0 if all was done; 1 if some was refused, or a check found something; 2 if nothing was.

    Example: textsim demo
    """
    if ctx.invoked_subcommand is None:
        typer.echo(_FIRST_STEPS, nl=False)


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        # A key may hold characters that the terminal's encoding lacks.
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    app(prog_name="textsim")
