"""The commands and groups of Typer that all commands are made of, and the options that they all have.

A command reads its parameters when it needs them, and imports no Pydantic, so it starts quickly.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from textsim_db.cli.messages import LEVELS, common_options, configure
from textsim_db.errors import suggestion
from textsim_db.results.shown_values import shown


def _choose_log_json(value: bool) -> None:
    common_options.log_json = common_options.log_json or value
    configure()


def _choose_level(value: str | None) -> None:
    if value is None:
        return
    if value.lower() not in LEVELS:
        near = suggestion(value, LEVELS)
        raise typer.BadParameter(f'"{value}" is not one of {", ".join(LEVELS)}{near}')
    common_options.log_level = getattr(logging, value.upper())
    configure()


def declare_log_options(
    log_json: Annotated[
        bool,
        typer.Option(
            "--log-json",
            callback=_choose_log_json,
            is_eager=True,
            expose_value=False,
            help="Write messages and progress to standard error as JSON, one object on each line.",
        ),
    ] = False,
    log_level: Annotated[
        str | None,
        typer.Option(
            "--log-level",
            callback=_choose_level,
            is_eager=True,
            expose_value=False,
            metavar="|".join(LEVELS),
            help="Write messages of this level and above. Default: info for the command, warning "
            "for the library.",
        ),
    ] = None,
) -> None:
    """Declare the log options: Typer makes options only from a function's parameters."""


def _choose_json(value: bool) -> None:
    common_options.json = value


def declare_json(
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            callback=_choose_json,
            is_eager=True,
            expose_value=False,
            help="Print the result as JSON, one object on each line. dedupe, demo, mcp and review have "
            "no such option.",
        ),
    ] = False,
) -> None:
    """Declare the option: Typer makes options only from a function's parameters."""


@cache
def declared_by(function: Callable[..., None]) -> list[Any]:
    return without_pydantic(_command_of(function).params)


@cache
def _command_of(function: Callable[..., None]) -> Any:
    app = typer.Typer(add_completion=False)
    app.command()(function)
    return typer.main.get_command(app)


class _ValueReader:
    """Reads the values of a parameter as Typer does, without Pydantic: its import takes 0.15 s."""

    def __init__(self, parser: Callable[[Any], Any]) -> None:
        self.parser = parser

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if param.multiple or param.nargs == -1:
            return tuple(map(self.parser, value or ()))
        return None if value is None else self.parser(value)


def without_pydantic(parameters: list[Any]) -> list[Any]:
    """Return the parameters, which read texts and what we parse ourselves without Pydantic."""
    for parameter in parameters:
        described = getattr(parameter, "type_descriptor", None)  # older versions of Typer have none
        if described is not None:
            plain = {str: str, list[str]: str, bool: bool}.get(described.annotation)
            parser = described.parameter_info.parser or plain
            if parser is not None:
                parameter._runtime_param = _ValueReader(parser)
    return parameters


def check_repeated(command: Any, ctx: Any, args: list[str]) -> None:
    """Raise BadParameter if an option that takes one value is given again: the last would win."""
    _, _, order = command.make_parser(ctx).parse_args(args=list(args))
    for option, times in Counter(order).items():
        if times > 1 and not getattr(option, "is_flag", True) and not option.multiple:
            raise typer.BadParameter("it takes one value, and is given twice", ctx, option)


def postponed(
    load: Callable[[], Callable[..., None]], name: str, text: str | None
) -> Callable[[], None]:
    """Return a function for Command: `load` returns the function of the command; text: its help."""

    def placeholder() -> None: ...

    placeholder.__name__, placeholder.__doc__ = name, text
    placeholder.load = cache(load)  # type: ignore[attr-defined]
    return placeholder


class SubcommandGroup(TyperGroup):
    """A group of commands, which starts without Pydantic."""

    def get_params(self, ctx: Any) -> list[Any]:
        return without_pydantic(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name; an error suggests those of subgroups, too."""
        try:
            return super().resolve_command(ctx, args)
        except Exception as error:
            error.message = f'there is no command "{shown(args[0])}"{self._near(ctx, args[0])}'  # type: ignore[attr-defined]
            raise

    def _near(self, ctx: Any, name: str) -> str:
        paths: dict[str, list[str]] = {}
        for word, command in self.commands.items():
            for path in (word, *(f"{word} {each}" for each in getattr(command, "commands", ()))):
                paths.setdefault(path.rpartition(" ")[2], []).append(f"{ctx.command_path} {path}")
        near = [name] if name in paths else get_close_matches(name, paths, 1)
        return f"; did you mean {' or '.join(paths[near[0]])}?" if near else ""


class Command(TyperCommand):
    """A command that has the log options; its own are read when they are needed, not for each start."""

    def __init__(self, *args: Any, callback: Any, **options: Any) -> None:
        self._load: Callable[[], Callable[..., None]] = callback.load
        super().__init__(*args, callback=callback, **options)

    @property
    def params(self) -> list[Any]:
        return declared_by(self._load())

    @params.setter
    def params(self, _: list[Any]) -> None:
        """Ignore the parameters of the placeholder."""

    @property
    def callback(self) -> Any:
        return _command_of(self._load()).callback

    @callback.setter
    def callback(self, _: Any) -> None:
        """Ignore the placeholder."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        check_repeated(self, ctx, args)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        own = without_pydantic(super().get_params(ctx))  # --help too
        return [*own, *declared_by(declare_log_options)]

    def invoke(self, ctx: Any) -> Any:
        common_options.command = ctx.command_path.partition(" ")[2]
        return super().invoke(ctx)


class JsonCommand(Command):
    def get_params(self, ctx: Any) -> list[Any]:
        return [*super().get_params(ctx), *declared_by(declare_json)]
