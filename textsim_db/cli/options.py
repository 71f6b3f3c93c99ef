"""The options that several commands have: their texts, the settings of a corpus, and files to write."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import typer

from textsim_db.errors import InputError
from textsim_db.files.records import is_special
from textsim_db.results.shown_values import shown
from textsim_db.settings.corpus_settings import (
    AUTO,
    SETTINGS,
    CorpusConfig,
    CorpusSettings,
    metadata_of,
)

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus


SHARED = """
Args:
    corpus: Name of the corpus.
    create: Create the corpus if it does not exist.
    database_url (URL): Address of the database, such as postgresql://user@host/name. Default:
        TEXTSIM_DATABASE_URL, or the embedded PostgreSQL.
    encoding (NAME): The encoding of the files, such as cp1252 (Windows), latin-1 or utf-16. Records are
        then written in UTF-8. Default: UTF-8.
    file (PATH): Read the text from a file; "-" is standard input.
    form: A table for people; JSON lines or CSV (UTF-8) for programs.
    glob (PATTERN): Read these files of a folder and its subfolders.
    key_columns (COLUMN): Column, or member in JSON, with the key. Default: id. Repeat it if the key has
        several columns.
    kind: Format of the files; auto decides by their names.
    max_documents: Do not list a run that more documents have, such as a header. Default: list all but
        those that the corpus has learned to leave out.
    measure (NAME): Verify and order the candidates by this measure, such as cosine_similarity,
        containment, overlap or levenshtein. Any other than jaccard needs --threshold: the least
        similarity, or the greatest distance.
    min_words: The words of the shortest passage. Default: --passages of the corpus, and not fewer.
    quote: How a quotation mark stands in a quoted value of CSV and TSV: doubled, or after a backslash.
        With none, quotation marks are part of the text. auto means doubled, but lines that look like
        records of their own are no record.
    scope_columns (COLUMN): Column, or member in JSON, with the scope, such as a tenant: documents of
        different scopes are not compared. Repeat it if the scope has several columns.
    separator (CHARACTER): The character between two columns of CSV and TSV, such as ";" or tab. Default:
        the header shows it.
    table: Name of the table as SQL takes it: article, blog."Articles".
    text (COLUMN): Column, or member in JSON, with the text. Dots lead to a nested member:
        message.content, messages.0.content.
    yes: Do not ask for confirmation.
"""
"""The help of arguments that several commands have, as in a docstring."""


def misused(option: str, message: str) -> typer.BadParameter:
    return typer.BadParameter(message, param_hint=option)


PartialSettings = dict[str, Any]
"""The settings that the user typed, by name; CorpusSettings has the defaults."""

LEFT_AS_IT_IS = "unchanged"
"""The default of settings that a command changes."""


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


def typed(settings: dict[str, Any]) -> PartialSettings:
    """Return the settings that the user typed, with the words of the files that they name."""
    present = {name: value for name, value in settings.items() if value is not None}
    for name in ("stop_words", "guard_words", "guard_fillers"):
        words = present.get(name)
        if words is not None and ("." in words or "/" in words):
            from textsim_db.files.read_documents import read_text

            present[name] = tuple(read_text(words).splitlines())
    return present


def flag_of(name: str) -> str:
    return f"--{metadata_of(name)['flag'] or name.removeprefix('is_').replace('_', '-')}"


def check_writable(path: str) -> None:
    """Raise InputError unless a file can be written to this path; called before long work."""
    if path == "-":
        return
    if os.path.isdir(path):
        raise InputError(f"{shown(path)} is a folder; expected a file")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise InputError(
            f"{shown(path)}: cannot be written: there is no folder {shown(folder)}; create it first"
        )
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise InputError(f"{shown(path)}: cannot be written: this user has no right to write there")


def check_output(
    option: str,
    path: str,
    others: Iterable[tuple[str, str | int]],
    way_out: str = "name another file",
) -> None:
    """Raise an error unless a file can be written to this path, and it is no other file of the command.

    others: the option and the path, or the file descriptor, of each other file; "-" is standard input.
    Devices and pipes are not replaced, so they may occur twice.
    """
    check_writable(path)
    if path == "-" or is_special(path):
        return
    for argument, other in others:
        if _is_same(path, 0 if other == "-" else other):
            raise misused(option, f"{shown(path)} is also {argument}; {way_out}")


def _is_same(path: str, other: str | int) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.stat(path), os.stat(other))
    return isinstance(other, str) and os.path.realpath(path) == os.path.realpath(other)


def check_plot(path: str | None) -> None:
    """Raise an error unless a plot can be written to this path; called before long work."""
    if path is None:
        return
    from textsim_db.sketch import recall_plots

    recall_plots.check_file(path)
    check_writable(path)
