"""textsim corpus create, list and drop, and rebuild."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import typer

from textsim_db.cli import options
from textsim_db.cli.declare import with_settings
from textsim_db.cli.messages import (
    common_options,
    confirm,
    print_message,
    print_object,
    print_result,
)
from textsim_db.cli.opening import connect, each_corpus
from textsim_db.cli.output import Format, Setting, cell, console, table, write
from textsim_db.cli.progress_lines import progress
from textsim_db.errors import CorpusExists, RecipeError
from textsim_db.results.shown_values import count, shown
from textsim_db.settings.corpus_settings import CHANGEABLE, SETTINGS

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus

app = typer.Typer(no_args_is_help=True, help="Create, list and drop corpora.")

_SHOWN_STOP_WORDS = 10
_OF_BANDS = {"num_hashes", "bands", "rows", "seed"}
"""Settings that mean nothing in an exact corpus."""


@app.command()
@with_settings(*SETTINGS)
def create(
    corpus: str,
    /,
    *,
    settings: options.PartialSettings,
    exist_ok: bool = False,
    database_url: str | None = None,
) -> None:
    """Create a corpus.

    It prints the settings, with the bands and rows that follow from them, and the probability that a
    similar document is found.

    Args:
        exist_ok: Do nothing if the corpus exists with these settings.

    Examples:
    - `textsim corpus create news`
    - `textsim corpus create news --recall 1`
    - `textsim corpus create titles --shingle char:4 --threshold 0.6 --recall 0.99`

    """
    from textsim_db.db import stored_corpus
    from textsim_db.write.temporary_corpora import check_not_reserved

    with connect(database_url) as db:
        try:
            # Not db.create_corpus, which loads kernels.
            check_not_reserved(corpus)
            config = options.complete(settings)
            stored_corpus.create(db.engine, corpus, config)
            stored_corpus.warn_of_misses(corpus, config)
        except CorpusExists:
            if not exist_ok:
                raise
            options.check_existing(db.corpus(corpus, on_server=True), settings)
        opened = db.corpus(corpus, on_server=True)
        _show_or_print_object(opened)
        _print_unlearned(opened)


@app.command("list")
def list_(
    corpus: str | None = None,
    /,
    *,
    form: Format = Format.TABLE,
    database_url: str | None = None,
) -> None:
    """List the corpora, or all settings of one.

    Of one corpus it also prints the probability that a similar document is found.

    Args:
        corpus: Name of the corpus. Default: every corpus, with its documents, shingle and threshold.

    Examples:
    - `textsim corpus list --format csv`
    - `textsim corpus list news`

    """
    rows = []
    damaged: list[str] = []
    with connect(database_url) as db:
        if corpus is not None:
            opened = db.corpus(corpus, on_server=True)
            if form is Format.TABLE:
                _show(opened)
            else:
                row = _object(opened)
                write(tuple(row), [tuple(row.values())], form)
            return
        for each, documents in each_corpus(db, None, len, damaged):
            config = each.config
            rows.append((each.name, documents, str(config.shingle), Setting(config.threshold)))
    if not write(("corpus", "documents", "shingle", "threshold"), rows, form) and not damaged:
        print_message("no corpus; create one with: textsim corpus create NAME")
    if damaged:
        raise typer.Exit(1)


@app.command()
def drop(corpus: str, /, *, yes: bool = False, database_url: str | None = None) -> None:
    """Remove a corpus with all its documents.

    It asks before, unless --yes is given. The tables must be detached first.

    Example: `textsim corpus drop news --yes`
    """
    with connect(database_url) as db:
        try:
            number = len(db.corpus(corpus, on_server=True))
            documents = f" with {count(number, 'document')}"
        except RecipeError:  # it cannot be opened, but it can be dropped
            number, documents = None, ""
        confirm(f'remove the corpus "{corpus}"{documents}', yes)
        db.drop_corpus(corpus)
    message = f'removed the corpus "{corpus}"{documents}'
    print_result(message, corpus=corpus, documents=number)


@with_settings(*CHANGEABLE, default=options.LEFT_AS_IT_IS)
def rebuild(
    corpus: str,
    /,
    *,
    settings: options.PartialSettings,
    database_url: str | None = None,
) -> None:
    """Build a corpus anew with other settings, while it is in use.

    Settings that are not given stay as they are. Searches and writers use the old corpus until the new
    corpus is complete; then the new corpus replaces it in one transaction, attached tables included.
    Until then the disk holds both. If no stored row depends on the settings, as with --no-unique, only
    the settings are stored. Without settings, rebuild numbers the documents from 1. It prints
    the settings of the new corpus. If the settings make a unique corpus, but its documents match each
    other, rebuild changes nothing and lists them.

    Examples:
    - `textsim rebuild news --threshold 0.7 --num-hashes 256`
    - `textsim rebuild news --recall 1`
    - `textsim rebuild titles --unique`

    """
    with connect(database_url) as db:
        opened = db.corpus(corpus, to_rebuild=True)
        before, start = opened.config, time.monotonic()
        with progress("rebuilding", "documents") as show_done:
            rebuilt = opened.rebuild(**settings, progress=show_done)
        if not rebuilt and opened.config == before:
            message = f'the corpus "{corpus}" has these settings already'
            print_result(message, **_object(opened), is_rebuilt=False)
            return
        if rebuilt:
            documents, seconds = len(opened), time.monotonic() - start
            print_message(
                f'rebuilt the corpus "{corpus}" with {count(documents, "document")}; {seconds:.1f} s',
                corpus=corpus,
                documents=documents,
                seconds=round(seconds, 3),
            )
        else:
            print_message(f'changed the settings of "{corpus}"; its documents stay as they are')
        _show_or_print_object(opened, is_rebuilt=rebuilt)
        _print_unlearned(opened)
        if opened.config.boilerplate_values:
            _print_documents_of_nothing_else(opened)


def _print_unlearned(corpus: Corpus) -> None:
    if corpus.config.learns_boilerplate:
        print_message(
            f"no boilerplate is learned yet, because too few documents show it; when the corpus has "
            f"more, run: textsim rebuild {corpus.name}"
        )


def _print_documents_of_nothing_else(corpus: Corpus) -> None:
    from textsim_db.read.boilerplate_values import without_words

    number, keys = corpus._current.call(without_words)
    if number:
        examples = ", ".join(shown(key) for key in keys)
        documents = count(number, "document")
        print_message(
            f"{documents} without words, or of boilerplate alone, match nothing: {examples}"
        )


def _object(corpus: Corpus) -> dict[str, Any]:
    return {"corpus": corpus.name, **options.settings_of(corpus.config), "documents": len(corpus)}


def _show_or_print_object(corpus: Corpus, **fields: object) -> None:
    if common_options.json:
        print_object({**_object(corpus), **fields})
    else:
        _show(corpus)


def _show(corpus: Corpus) -> None:
    from rich.text import Text

    out = console()
    out.print(Text("\n".join(f"{name:<17}{value}" for name, value in _lines(corpus))))
    out.print()
    if corpus.config.is_exact:
        out.print(f"exact: every pair of similarity {corpus.config.threshold:g} or more is found")
    else:
        similarities = sorted({0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, corpus.config.threshold})
        rows = [(Setting(each), corpus.config.probability(each)) for each in similarities]
        out.print(table(("similarity", "found with probability"), rows))


def _lines(corpus: Corpus) -> list[tuple[str, str]]:
    settings: dict[str, Any] = {"corpus": corpus.name, **options.settings_of(corpus.config)}
    words = corpus.config.stop_words
    if len(words) > _SHOWN_STOP_WORDS:
        rest = len(words) - _SHOWN_STOP_WORDS
        settings["stop_words"] = f"{' '.join(words[:_SHOWN_STOP_WORDS])} and {rest:,} more"
    if corpus.config.is_exact:
        settings = {name: value for name, value in settings.items() if name not in _OF_BANDS}
    settings["documents"] = f"{len(corpus):,}"
    return [
        (name.removeprefix("is_").replace("_", " "), _plain(value))
        for name, value in settings.items()
    ]


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value in (None, ""):
        return "none"
    return cell(Setting(value)) if isinstance(value, float) else shown(str(value))
