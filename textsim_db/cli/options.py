"""The arguments and options that several commands share, and the functions that read them."""

from __future__ import annotations

import codecs
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_type_hints

import typer

from textsim_db.cli.logs import postponed
from textsim_db.errors import ConfigurationError, install_extra, shown, suggestion
from textsim_db.files.file_kinds import Kind, Quote
from textsim_db.settings.corpus_settings import (
    AUTO,
    DEFAULTS,
    SETTINGS,
    CorpusConfig,
    CorpusSettings,
    metadata_of,
)
from textsim_db.settings.named_values import Linkage, Mode, Verdict

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus


Choice = TypeVar("Choice", bound=StrEnum)
_LAST_PORT = 65535


def misused(option: str, message: str) -> typer.BadParameter:
    return typer.BadParameter(message, param_hint=option)


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


def positive_number(text: str) -> int:
    value = whole_number(text)
    if value < 1:
        raise typer.BadParameter(f"{value} is too low; expected 1 or more")
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


def number_option(text: str, metavar: str = "NUMBER") -> Any:
    return typer.Option(parser=number, metavar=metavar, help=text)


def whole_number_option(text: str) -> Any:
    return typer.Option(parser=whole_number, metavar="NUMBER", help=text)


def positive_number_option(text: str, *flags: str) -> Any:
    return typer.Option(*flags, parser=positive_number, metavar="NUMBER", help=text)


def choice_option(choices: type[Choice], text: str, *flags: str) -> Any:
    return typer.Option(*flags, parser=choice_of(choices), metavar="|".join(choices), help=text)


def record_kind_option(text: str) -> Any:
    kinds = "|".join(kind for kind in Kind if kind is not Kind.TEXT)
    return typer.Option(parser=choice_of(Kind), metavar=kinds, help=text)


def _separator(text: str) -> str:
    mark = "\t" if text in ("\\t", "tab") else text
    if len(mark) != 1 or mark in '"\r\n':
        raise typer.BadParameter(f'"{shown(text)}" is no separator; expected one character, or tab')
    return mark


RecordKindOption = Annotated[
    Kind, record_kind_option("Format of the files of records; auto decides by their names.")
]
SeparatorOption = Annotated[
    str | None,
    typer.Option(
        "--separator",
        parser=_separator,
        metavar="CHARACTER",
        help='The character between two columns of CSV and TSV, such as ";" or tab. Default: the header '
        "shows it.",
    ),
]
QuoteOption = Annotated[
    Quote,
    choice_option(
        Quote,
        "How a quotation mark stands in a quoted value of CSV and TSV: doubled, or after a backslash. "
        "none: quotation marks are part of the text. auto: doubled, but lines that look like records of "
        "their own are no record.",
        "--quote",
    ),
]


def _encoding(text: str) -> str:
    try:
        codecs.getincrementaldecoder(text)("surrogateescape").decode(b"", final=True).encode()
    except (LookupError, AssertionError, AttributeError, TypeError):
        raise typer.BadParameter(
            f'"{shown(text)}" is no encoding of texts; expected one such as cp1252, latin-1 or utf-16'
        ) from None
    return text


EncodingOption = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        parser=_encoding,
        metavar="NAME",
        help="The encoding of the files, such as cp1252 (Windows), latin-1 or utf-16. Records are then "
        "written in UTF-8. Default: UTF-8.",
    ),
]


def _pattern(text: str) -> str:
    if not text:
        raise typer.BadParameter('it is empty; expected a pattern such as "*.md"')
    return text


GlobOption = Annotated[
    str,
    typer.Option(
        "--glob",
        parser=_pattern,
        metavar="PATTERN",
        help="Read these files of a folder and its subfolders.",
    ),
]


def column_option(text: str, *flags: str) -> Any:
    return typer.Option(*flags, metavar="COLUMN", help=text)


KeyColumns = Annotated[
    list[str] | None,
    column_option(
        "Column, or member in JSON, with the key. Default: id. Repeat it if the key has several columns."
    ),
]


ScopeColumns = Annotated[
    list[str] | None,
    column_option(
        "Column, or member in JSON, with the scope, such as a tenant: documents of different scopes are "
        "not compared. Repeat it if the scope has several columns.",
        "--scope",
    ),
]


TextColumn = Annotated[
    str,
    column_option(
        "Column, or member in JSON, with the text. Dots lead to a nested member: message.content, "
        "messages.0.content."
    ),
]


def path_option(text: str, *flags: str) -> Any:
    return typer.Option(*flags, metavar="PATH", help=text)


def check_port(port: int, option: str) -> None:
    """Raise an error unless this is the number of a port; 0 stands for any free port."""
    if not 0 <= port <= _LAST_PORT:
        raise misused(option, f"port {port} is out of range; expected 0 to {_LAST_PORT}")


@contextmanager
def needs_extra(name: str, reason: str) -> Iterator[None]:
    """Raise ConfigurationError, with the command that helps, if a package of an extra is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"{reason}: {install_extra(name)}") from error


def _own_or_global(ctx: typer.Context, value: str | None) -> str | None:
    """Let --database-url stand before the command as well as after it."""
    return value or ctx.find_root().params.get("database_url")


DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        metavar="URL",
        callback=_own_or_global,
        help="Address of the database, such as postgresql://user@host/name. Default: "
        "TEXTSIM_DATABASE_URL, or the embedded PostgreSQL.",
    ),
]
CorpusName = Annotated[str, typer.Argument(metavar="CORPUS", help="Name of the corpus.")]
OptionalCorpus = Annotated[
    str | None, typer.Argument(metavar="CORPUS", help="Name of the corpus. Default: every corpus.")
]
Threshold = Annotated[
    float | None,
    number_option(
        "Least similarity of a result: above 0, at most 1. Default: the corpus's threshold. "
        "Below it some similar documents are missed: textsim corpus show prints the share."
    ),
]
LanguageLimit = Annotated[
    str | None,
    typer.Option(
        "--language",
        metavar="CODE",
        help='Search documents of this language only, such as "en". The corpus must identify languages. '
        "Default: every language.",
    ),
]
ScopeLimit = Annotated[
    str | None,
    typer.Option(
        "--scope",
        metavar="SCOPE",
        help="Search the documents of this scope only. A scoped corpus requires it.",
    ),
]
ScopeOfPairs = Annotated[
    str | None,
    typer.Option(
        "--scope",
        metavar="SCOPE",
        help="Compare the documents of this scope only. Default: the documents of every scope, each "
        "scope by itself.",
    ),
]
LinkageOption = Annotated[
    str,
    choice_option(
        Linkage,
        "What makes a cluster. single: chains of similar documents. complete: every two members are "
        "similar. kept: each member is similar to the member that is kept.",
    ),
]
MeasureOption = Annotated[
    str,
    typer.Option(
        "--measure",
        metavar="NAME",
        help="Verify and order the candidates by this measure, such as cosine_similarity, "
        "containment, overlap or levenshtein. Any other than jaccard needs --threshold: the least "
        "similarity, or the greatest distance.",
    ),
]


SearchedText = Annotated[
    str | None,
    typer.Argument(
        metavar="TEXT", help='The text to look for; "-" is standard input. Or use --file.'
    ),
]
SearchedFile = Annotated[
    str | None, path_option('Read the text from a file; "-" is standard input.', "--file")
]
LeastWords = Annotated[
    int | None,
    positive_number_option(
        "The words of the shortest passage. Default: --passages of the corpus, and not fewer.",
        "--words",
    ),
]
MostDocuments = Annotated[
    int | None,
    positive_number_option(
        "Do not list a run that more documents have, such as a header. Default: list all but those "
        "that the corpus has learned to leave out.",
        "--max-documents",
    ),
]
TableName = Annotated[
    str,
    typer.Argument(
        metavar="TABLE", help='Name of the table as SQL takes it: article, blog."Articles".'
    ),
]

ARGUMENTS: dict[str, Any] = {
    "measure": MeasureOption,
    "language": LanguageLimit,
    "min_words": LeastWords,
    "max_documents": MostDocuments,
    "table": TableName,
}
"""The arguments of methods whose options have texts of their own, and not those of the docstring."""
CHOICES: dict[str, type[StrEnum]] = {
    "linkage": Linkage,
    "mode": Mode,
    "verdict": Verdict,
    "replaces": Verdict,
}
"""The arguments that take one of some words."""
METAVARS = {
    "scope": "SCOPE",
    "key": "KEY",
    "original": "TEXT",
    "note": "TEXT",
    "source": "TEXT",
    "prefix": "TEXT",
    "keep_events": "TIME",
    "since": "TIME",
    "statement": "SQL",
    "keep": "first|last|longest|shortest",
    "kept": "KEY",
}
Create = Annotated[bool, typer.Option("--create", help="Create the corpus if it does not exist.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


PartialSettings = dict[str, Any]
"""The settings that the user typed, by name; CorpusSettings has the defaults."""

LEFT_AS_IT_IS = "unchanged"
"""The default of settings that a command changes."""
NEW_CORPUS = "Configuration of a new corpus"
_PARSERS: dict[type, Callable[[str], object]] = {float: number, int: whole_number}


def with_settings(
    *names: str,
    default: str = "{}",
    panel: str | None = NEW_CORPUS,
    defaults: CorpusSettings = DEFAULTS,
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Replace the parameter settings of a command by an option for each of these settings.

    The command receives the settings that the user typed. default describes the default in the help;
    {} stands for the value in defaults.
    """

    def decorate(command: Callable[..., None]) -> Callable[[], None]:
        def run(**arguments: Any) -> None:
            settings = {name: arguments.pop(name) for name in names}
            command(settings=_present(settings), **arguments)

        def load() -> Callable[..., None]:
            signature = inspect.signature(command, eval_str=True)
            parameters: list[inspect.Parameter] = []
            for parameter in signature.parameters.values():
                if parameter.name == "settings":
                    parameters += [_option(name, default, panel, defaults) for name in names]
                else:
                    parameters.append(parameter)
            # Typer reads the signature and the annotations.
            run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
                sorted(parameters, key=lambda p: p.default is not p.empty)
            )
            run.__annotations__ = {p.name: p.annotation for p in parameters}
            return run

        return postponed(load, command.__name__, command.__doc__)

    return decorate


def complete(settings: PartialSettings) -> CorpusConfig:
    return _with_lists(settings).complete()


def check_existing(corpus: Corpus, settings: PartialSettings) -> None:
    _with_lists(settings).check_same(corpus.name, corpus.config)


def settings_of(corpus_config: CorpusConfig) -> dict[str, Any]:
    values = {name: getattr(corpus_config, name) for name in SETTINGS}
    return {
        **{n: " ".join(value) if type(value) is tuple else value for n, value in values.items()},
        "shingle": str(corpus_config.shingle),
        **({"stop_words": AUTO} if corpus_config.stop_words_by_language else {}),
        "keep_for": corpus_config.keep_for
        and str(corpus_config.keep_for).removesuffix(", 0:00:00"),
        "recipe": corpus_config.recipe,
    }


def _with_lists(settings: PartialSettings) -> CorpusSettings:
    if not settings.keys() & {"stop_words", "guards", "guard_words", "guard_fillers"}:
        return CorpusSettings(**settings)
    from textsim_db.text.stop_words import with_lists

    return with_lists(CorpusSettings(**settings))


def _present(settings: dict[str, Any]) -> PartialSettings:
    present = {name: value for name, value in settings.items() if value is not None}
    for name in ("stop_words", "guard_words", "guard_fillers"):
        words = present.get(name)
        if words is not None and ("." in words or "/" in words):
            from textsim_db.files.read_documents import read_text

            present[name] = tuple(read_text(words).splitlines())
    return present


def flag_of(name: str) -> str:
    return f"--{metadata_of(name)['flag'] or name.removeprefix('is_').replace('_', '-')}"


def _option(
    name: str, default: str, panel: str | None, defaults: CorpusSettings
) -> inspect.Parameter:
    metadata = metadata_of(name)
    hint = get_type_hints(CorpusSettings)[name]
    kind = next((k for k in (bool, *_PARSERS) if k in (hint, *get_args(hint))), str)
    flags = flag_of(name)
    if kind is bool and default == LEFT_AS_IT_IS:
        flags += f"/--no-{flags.removeprefix('--')}"
    option = typer.Option(
        flags,
        parser=_PARSERS.get(kind),
        metavar=None if kind is bool else metadata["metavar"],
        help=metadata["meaning"] + _default_text(name, default, defaults),
        rich_help_panel=panel,
    )
    return inspect.Parameter(
        name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=None,
        annotation=Annotated[kind | None, option],
    )


def _default_text(name: str, default: str, defaults: CorpusSettings) -> str:
    value = getattr(defaults, name)
    if value is None or (value is False and default != LEFT_AS_IT_IS):
        return ""
    shown_value = "none" if value == () else f'"{value}"' if isinstance(value, str) else str(value)
    return f" Default: {default.format(shown_value)}."
