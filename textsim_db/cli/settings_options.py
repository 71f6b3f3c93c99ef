"""The options for the settings of a corpus, made from CorpusSettings for all commands alike."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from textsim_db.cli.options import number, whole_number
from textsim_db.settings import AUTO, DEFAULTS, SETTINGS, CorpusConfig, CorpusSettings, metadata_of

if TYPE_CHECKING:
    from textsim_db.corpus import ManagedCorpus

PartialSettings = dict[str, Any]
"""The settings that the user typed, by name; CorpusSettings has the defaults."""

LEFT_AS_IT_IS = "unchanged"
"""The default of settings that a command changes."""
NEW_CORPUS = "Configuration of a new corpus"
_PARSERS: dict[type, Callable[[str], object]] = {float: number, int: whole_number}


def with_settings(
    *names: str, default: str = "{}", panel: str | None = NEW_CORPUS
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace the parameter settings of a command by an option for each of these settings.

    The command receives the settings that the user typed. default describes the default in the help;
    {} stands for the value in CorpusSettings.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**arguments: Any) -> None:
            settings = {name: arguments.pop(name) for name in names}
            command(settings=_present(settings), **arguments)

        signature = inspect.signature(command, eval_str=True)
        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            if parameter.name == "settings":
                parameters += [_option(name, default, panel) for name in names]
            else:
                parameters.append(parameter)
        # Typer reads the signature and the annotations.
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            sorted(parameters, key=lambda p: p.default is not p.empty)
        )
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        return run

    return decorate


def complete(settings: PartialSettings) -> CorpusConfig:
    """Return the settings of a new corpus; raises ConfigurationError unless one can have them."""
    return _with_lists(settings).complete()


def check_existing(corpus: ManagedCorpus, settings: PartialSettings) -> None:
    """Raise CorpusExists unless the corpus has these settings."""
    _with_lists(settings).check_same(corpus.name, corpus.config)


def settings_of(corpus_config: CorpusConfig) -> dict[str, Any]:
    """Return a configuration as commands show it, by name."""
    words = AUTO if corpus_config.stop_words_by_language else " ".join(corpus_config.stop_words)
    return {
        **{name: getattr(corpus_config, name) for name in SETTINGS},
        "shingle": str(corpus_config.shingle),
        "stop_words": words,
        "keep_for": corpus_config.keep_for
        and str(corpus_config.keep_for).removesuffix(", 0:00:00"),
        "recipe": corpus_config.recipe,
    }


def _with_lists(settings: PartialSettings) -> CorpusSettings:
    if "stop_words" not in settings:
        return CorpusSettings(**settings)
    from textsim_db.text.stop_words import with_lists

    return with_lists(CorpusSettings(**settings))


def _present(settings: dict[str, Any]) -> PartialSettings:
    present = {name: value for name, value in settings.items() if value is not None}
    words = present.get("stop_words")
    if words is not None and ("." in words or "/" in words):
        from textsim_db.files.read_documents import read_text

        present["stop_words"] = tuple(read_text(words).splitlines())
    return present


def _option(name: str, default: str, panel: str | None) -> inspect.Parameter:
    metadata = metadata_of(name)
    hint = get_type_hints(CorpusSettings)[name]
    kind = next((k for k in (bool, *_PARSERS) if k in (hint, *get_args(hint))), str)
    flag = name.removeprefix("is_").replace("_", "-")
    flags = f"--{flag}/--no-{flag}" if kind is bool and default == LEFT_AS_IT_IS else f"--{flag}"
    option = typer.Option(
        flags,
        parser=_PARSERS.get(kind),
        metavar=None if kind is bool else metadata["metavar"],
        help=metadata["meaning"] + _default_text(name, default),
        rich_help_panel=panel,
    )
    return inspect.Parameter(
        name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=None,
        annotation=Annotated[kind | None, option],
    )


def _default_text(name: str, default: str) -> str:
    value = getattr(DEFAULTS, name)
    if value is None or (value is False and default != LEFT_AS_IT_IS):
        return ""
    shown_value = "none" if value == () else f'"{value}"' if isinstance(value, str) else str(value)
    return f" Default: {default.format(shown_value)}."
