"""--json: the result of a command on standard output as JSON, one object on each line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

import typer
import typer.main

from textsim_db.cli import logs


@dataclass(slots=True)
class JsonOption:
    """The option of the command that runs."""

    is_given: bool = False


json_option = JsonOption()


def print_object(fields: dict[str, Any]) -> None:
    """Print an object on a line of standard output."""
    typer.echo(json.dumps(fields, ensure_ascii=False, default=str))


def _note(value: bool) -> None:
    json_option.is_given = value


def declare_option(
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            callback=_note,
            is_eager=True,
            expose_value=False,
            help="Print the result as JSON, one object on each line. dedupe, demo and review have no "
            "such option.",
        ),
    ] = False,
) -> None:
    """Declare the option: Typer makes options only from a function's parameters."""


class JsonCommand(logs.Command):
    """A command that has --json and the log options."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters of the command, --json, and the log options."""
        return [*super().get_params(ctx), *logs.declared_by(declare_option)]
