"""The arguments and options of a command, made from the arguments and the docstring of a function.

The function is that of a command, or a method of a corpus. The section Args of its docstring has the
help of an argument, and in brackets the word for its value. The help of other arguments of a command
stands in options.SHARED, or in the docstring of the method that has the name of the command. In a
function, the arguments before the slash are arguments of the command, and all others are options. In a
method, which has no slash, those without a default are arguments. The functions that read a value come
first.
"""

from __future__ import annotations

import codecs
import inspect
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_type_hints

import typer

from textsim_db.cli import options
from textsim_db.cli.command_types import postponed
from textsim_db.cli.output import Format, form_given
from textsim_db.errors import suggestion
from textsim_db.files.file_kinds import FileFormat, Kind, Quote
from textsim_db.results.shown_values import shown
from textsim_db.settings.corpus_settings import DEFAULTS, CorpusSettings, metadata_of
from textsim_db.settings.named_values import Existing, Linkage, Mode, Verdict

_SECTION = re.compile(r"^Args:\n((?: .*\n|\n)+)", re.MULTILINE)
_ARGUMENT = re.compile(r"^    (\w+)(?: \((.+?)\))?: (.+(?:\n {8}.+)*)", re.MULTILINE)
_CALL = re.compile(r"(\w)\(\)")
"""A method in a docstring, such as judge(); in a shell it is the command judge."""
Choice = TypeVar("Choice", bound=StrEnum)
_LAST_PORT = 65535


def number(text: str) -> float:
    """Read a number of the command line; Typer's own message would not quote it."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f'"{shown(text)}" is not a number') from None


def whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f'"{shown(text)}" is not a whole number') from None


def port(text: str) -> int:
    value = whole_number(text)
    if not 0 <= value <= _LAST_PORT:
        raise typer.BadParameter(f"port {value} is out of range; expected 0 to {_LAST_PORT}")
    return value


def choice_of(choices: type[Choice]) -> Callable[[str], Choice]:
    """Return a function that reads a word of the command line as a member of choices."""

    def read(text: str) -> Choice:
        try:
            return choices(text)
        except ValueError:
            near = suggestion(text, choices)
            message = f'"{shown(text)}" is not one of {", ".join(choices)}{near}'
            raise typer.BadParameter(message) from None

    return read


def separator(text: str) -> str:
    mark = "\t" if text in ("\\t", "tab") else text
    if len(mark) != 1 or mark in '"\r\n':
        raise typer.BadParameter(f'"{shown(text)}" is no separator; expected one character, or tab')
    return mark


def encoding(text: str) -> str:
    try:
        codecs.getincrementaldecoder(text)("surrogateescape").decode(b"", final=True).encode()
    except (LookupError, AssertionError, AttributeError, TypeError):
        raise typer.BadParameter(
            f'"{shown(text)}" is no encoding of texts; expected one such as cp1252, latin-1 or utf-16'
        ) from None
    return text


def pattern(text: str) -> str:
    if not text:
        raise typer.BadParameter('it is empty; expected a pattern such as "*.md"')
    return text


def own_or_global(ctx: typer.Context, value: str | None) -> str | None:
    """Let --database-url stand before the command as well as after it."""
    return value or ctx.find_root().params.get("database_url")


_TEXT = (str, None, "TEXT")
_TYPES: dict[str, tuple[Any, Callable[[str], object] | None, str | None]] = {
    "bool": (bool, None, None),
    "float": (float, number, "NUMBER"),
    "int": (int, whole_number, "NUMBER"),
    "list[str]": (list[str], None, "TEXT"),
    "Iterable[Key]": (list[str], None, "KEY"),
    "Sequence[ColumnName]": (list[str], None, "COLUMN"),
}
"""The type, the parser and the word for the value, by an annotation; any other is a text."""
_CHOICES: dict[str, type[StrEnum]] = {
    **{each.__name__: each for each in (Format, Kind, Linkage, Quote)},
    "ExistingName": Existing,
    "LinkageName": Linkage,
    "ModeName": Mode,
    "VerdictName": Verdict,
}
"""The types of arguments that take one of some words."""
_WORDS = {
    "ColumnName": "COLUMN",
    "Key": "KEY",
    "Scope": "SCOPE",
    "TableName": "TABLE",
    "datetime | str": "TIME",
    "timedelta | str": "TIME",
    "keep": "first|last|longest|shortest",
    "language": "CODE",
    "plot": "PATH",
    "report": "PATH",
    "row_filter": "CONDITION",
    "scope": "SCOPE",
    "statement": "SQL",
}
"""The words for values, by the type or the name of an argument, if its docstring has none."""
_SPECIAL: dict[str, dict[str, Any]] = {
    "database_url": {"callback": own_or_global},
    "encoding": {"parser": encoding},
    "form": {"flags": ("--format",), "callback": form_given},
    "glob": {"parser": pattern},
    "http": {"parser": port},
    "key_columns": {"flags": ("--key",)},
    "metrics_port": {"parser": port},
    "output": {"flags": ("--output", "-o")},
    "port": {"parser": port},
    "scope_columns": {"flags": ("--scope",)},
    "separator": {"parser": separator},
    "yes": {"flags": ("--yes", "-y")},
}
"""Properties of options that do not follow from the name and the type of an argument."""
_FILES = {"kind": "Kind", "separator": "str | None", "quote": "Quote", "encoding": "str | None"}
"""The options that stand in the place of an argument of type FileFormat."""


class Help(NamedTuple):
    text: str
    value: str = ""
    """The word for the value of an option."""


class SettingOptions(NamedTuple):
    """The options that stand in the place of the argument settings of a command."""

    names: tuple[str, ...]
    default: str
    """The default in the help; {} stands for the value in defaults."""
    defaults: CorpusSettings
    panel: str | None


def with_settings(
    *names: str,
    default: str = "{}",
    panel: str | None = "Configuration of a new corpus",
    defaults: CorpusSettings = DEFAULTS,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each of these settings; its argument settings gets those typed."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        command.__dict__["settings"] = SettingOptions(names, default, defaults, panel)
        return command

    return decorate


def as_command(function: Callable[..., None]) -> Callable[[], None]:
    """Return a function for Command, whose parameters are made when they are needed."""
    text = without_arguments(function.__doc__ or "")
    return postponed(partial(_declare, function), function.__name__, text)


def without_arguments(docstring: str) -> str:
    return _SECTION.sub("", f"{inspect.cleandoc(docstring)}\n")


def with_parameters(
    function: Callable[..., None], parameters: list[inspect.Parameter]
) -> Callable[..., None]:
    """Return a function with these parameters, of which Typer reads the signature and the types."""

    def run(**arguments: Any) -> None:
        function(**arguments)

    # Those with a default come last.
    ordered = sorted(parameters, key=lambda each: each.default is not each.empty)
    run.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _declare(function: Callable[..., None]) -> Callable[..., None]:
    arguments = inspect.signature(function).parameters
    texts = read_help(options.SHARED) | help_of(function)
    if arguments.keys() - texts.keys() - {"settings", "form_of_files"}:
        texts = _help_of_method(function.__name__) | texts
    parameters: list[inspect.Parameter] = []
    for name, argument in arguments.items():
        if name == "settings":
            settings: SettingOptions = function.__dict__["settings"]
            parameters += [_setting(each, settings) for each in settings.names]
        elif argument.annotation == "FileFormat":
            defaults = FileFormat()._asdict()
            parameters += [
                parameter(
                    argument.replace(name=each, annotation=kind, default=defaults[each]), texts
                )
                for each, kind in _FILES.items()
            ]
        else:
            is_argument = argument.kind is argument.POSITIONAL_ONLY
            parameters.append(parameter(argument, texts, is_argument))
    before_slash = [each.name for each in arguments.values() if each.kind is each.POSITIONAL_ONLY]

    def run(**values: Any) -> None:
        if "settings" in arguments:
            chosen = {name: values.pop(name) for name in function.__dict__["settings"].names}
            values["settings"] = options.typed(chosen)
        if "form_of_files" in arguments:
            values["form_of_files"] = FileFormat(**{name: values.pop(name) for name in _FILES})
        first = [values.pop(name) for name in before_slash]
        function(*first, **values)

    return with_parameters(run, parameters)


def _help_of_method(name: str) -> dict[str, Help]:
    from textsim_db.corpus import Corpus

    return help_of(getattr(Corpus, name)) if hasattr(Corpus, name) else {}


def help_of(function: Callable[..., object]) -> dict[str, Help]:
    """Return what the docstring of a function says of its arguments."""
    texts = read_help(function.__doc__ or "")
    for name, argument in inspect.signature(function).parameters.items():
        if name in texts and not texts[name].value:
            annotation = argument.annotation.removesuffix(" | None")
            word = _WORDS.get(annotation) or _WORDS.get(name, "")
            texts[name] = texts[name]._replace(value=word)
    return texts


def read_help(docstring: str) -> dict[str, Help]:
    section = _SECTION.search(f"{inspect.cleandoc(docstring)}\n")
    lines = _ARGUMENT.findall(section[1]) if section else []
    return {name: Help(" ".join(text.split()), value) for name, value, text in lines}


def parameter(
    argument: inspect.Parameter, texts: Mapping[str, Help], is_argument: bool = False
) -> inspect.Parameter:
    """Return the parameter of a command for an argument of a function."""
    name = argument.name.rstrip("_")
    text, value = texts[name]
    text, _, none = _CALL.sub(r"\1", text).partition("; None")
    if none:
        text += "." if argument.default is not None else ". Default: all."
    annotation = argument.annotation.rpartition(".")[2].removesuffix(" | None")
    kind, parser, word = _TYPES.get(annotation, _TEXT)
    if choices := _CHOICES.get(annotation):
        kind, parser, word = choices, choice_of(choices), "|".join(choices)
    named = {"parser": parser, "help": text[0].upper() + text[1:], **_SPECIAL.get(name, {})}
    flags = named.pop("flags", (f"--{name.replace('_', '-')}",))
    if is_argument:
        noun = name.removesuffix("s") if kind == list[str] else name
        option = typer.Argument(metavar=word if choices else noun.upper(), **named)
    else:
        option = typer.Option(*flags, metavar=value or word, **named)
    optional: Any = Annotated[kind | None if argument.default is None else kind, option]
    return _parameter(argument.name, argument.default, optional)


def _parameter(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _setting(name: str, settings: SettingOptions) -> inspect.Parameter:
    metadata, hint = metadata_of(name), get_type_hints(CorpusSettings)[name]
    kinds = {kind.__name__ for kind in (hint, *get_args(hint)) if isinstance(kind, type)}
    kind, parser, _ = _TYPES.get(min(kinds & _TYPES.keys(), default=""), _TEXT)
    flags = options.flag_of(name)
    if kind is bool and settings.default == options.LEFT_AS_IT_IS:
        flags += f"/--no-{flags.removeprefix('--')}"
    option = typer.Option(
        flags,
        parser=parser,
        metavar=None if kind is bool else metadata["metavar"],
        help=metadata["meaning"] + _default_text(name, settings),
        rich_help_panel=settings.panel,
    )
    return _parameter(name, None, Annotated[kind | None, option])


def _default_text(name: str, settings: SettingOptions) -> str:
    value = getattr(settings.defaults, name)
    if value is None or (value is False and settings.default != options.LEFT_AS_IT_IS):
        return ""
    shown_value = "none" if value == () else f'"{value}"' if isinstance(value, str) else str(value)
    return f" Default: {settings.default.format(shown_value)}."
