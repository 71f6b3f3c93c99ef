"""Commands that call one method of a corpus, made from the method's own arguments and docstring.

An Operation is the row of such a command: the method, its help, and how the result is shown. An argument
of the method without a default is an argument of the command, any other is an option. The section Args
of the help has texts of options that differ from those of the method's docstring. The class of the
corpus is imported when a command reads its arguments: textsim --help imports no driver of a database.
"""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from textsim_db.cli import options
from textsim_db.cli.command_types import postponed
from textsim_db.cli.declare import (
    Help,
    help_of,
    parameter,
    read_help,
    with_parameters,
    without_arguments,
)
from textsim_db.cli.messages import confirm, print_message, print_result
from textsim_db.cli.opening import connect, opened_or_created, searched_text
from textsim_db.cli.output import Format, write
from textsim_db.cli.progress_lines import counted, progress
from textsim_db.errors import suggestion
from textsim_db.results.shown_values import count, shown

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus

JACCARD_NAME = "jaccard"
_MOST_READ_FOR_SCOPES = 1_000_000
"""The scopes of a larger corpus are not read to explain an empty result: that takes seconds."""
_TEXT = 'The text to look for; "-" is standard input. Or use --file.'
_FUNCTIONS = {"progress", "rank"}
"""Arguments that are functions."""
_FILE = inspect.Parameter(
    "file", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="str | None"
)
"""The option that stands beside a text to look for."""


@dataclass(slots=True, eq=False)
class Operation:
    """A command that calls a method of a corpus and prints the result."""

    method: str
    help: str
    columns: tuple[str, ...] = ()
    """The fields of the result's rows that are printed; empty if the result has no rows."""
    are_searches: bool = False
    """Whether the rows say which guards differ, if the corpus has any."""
    noun: str = ""
    """A row as a noun, such as "pair"; the last message has the number of rows."""
    note_none: Callable[[Call], None] | None = None
    """Prints why there may be no rows."""
    show: Callable[[Call], None] | None = None
    """Prints the result; by default its rows."""
    done: str = ""
    """The message of a method that returns nothing or a number of documents; the call fills it in."""
    progress: tuple[str, str] | None = None
    """The words of the progress, such as ("removing", "documents")."""
    computes: bool = True
    """Whether kernels compute. Then the golden signature is compared when the corpus is opened."""
    asks: str = ""
    """The action that the user confirms, except with --yes."""
    asks_for: tuple[str, ...] = ()
    """The options for which the user confirms it; empty: always."""
    preview: Callable[[Corpus, dict[str, Any]], None] | None = None
    """Prints what the user should know before, from the corpus and the arguments."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Defaults of options that are not those of the method."""
    arguments: tuple[str, ...] = ()
    """Arguments with a default that are arguments of the command, and no options."""
    leaves_out: tuple[str, ...] = ()
    """Arguments of the method that the command does not have."""
    creates: bool = False
    """Whether the option --create creates a corpus that does not exist."""
    variants: Mapping[str, tuple[str, Operation]] = field(default_factory=dict)
    """Operations that take the place of this one if a flag is given: its help, and the operation."""


@dataclass(slots=True)
class Call:
    operation: Operation
    corpus: Corpus
    arguments: dict[str, Any]
    form: Format
    result: Any
    seconds: float

    def write_rows(self) -> int:
        """Print the rows of the result, their number and what may explain that there is none."""
        columns, rows = self._columns, self._rows()
        value, is_distance = _column_of(self.arguments.get("measure", JACCARD_NAME))
        if columns[0] == "similarity" and not isinstance(self.result, list):
            rows = self._counted(rows, is_distance)
        names = [value if name == "similarity" else name for name in columns]
        number = write(names, rows, self.form)
        if self.operation.noun:
            print_message(f"{count(number, self.operation.noun)} found")
        if not number:
            if self.operation.note_none:
                self.operation.note_none(self)
            note_unknown_scope(self.corpus, self.arguments.get("scope"))
        return number

    @property
    def _columns(self) -> tuple[str, ...]:
        has_guards = self.operation.are_searches and self.corpus.config.guards
        return (*self.operation.columns, "differs") if has_guards else self.operation.columns

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        columns = self._columns
        for row in self.result:
            yield tuple(self._shown(getattr(row, name)) for name in columns)

    def _shown(self, value: Any) -> Any:
        if isinstance(value, datetime):
            return value.isoformat()
        is_list = isinstance(value, tuple) and self.form is not Format.JSONL
        return " ".join(value) if is_list else value

    def _counted(
        self, rows: Iterator[tuple[Any, ...]], is_distance: bool
    ) -> Iterator[tuple[Any, ...]]:
        """Yield rows as they are found; those of a table in the order of their similarity."""
        is_table = self.form is Format.TABLE
        rows = counted("searching", f"{self.operation.noun}s", rows, are_printed=not is_table)
        if not is_table:
            return rows
        sign = 1 if is_distance else -1
        return iter(sorted(rows, key=lambda row: (sign * row[0], row[1:])))

    def print_done(self) -> None:
        names = {"corpus": self.corpus.name, **self.arguments}
        fields = names if self.result is None else names | {"documents": self.result}
        texts = {name: shown(str(value)) for name, value in names.items()}
        print_result(
            self.operation.done.format(documents=count(self.result or 0, "document"), **texts),
            **fields,
        )


def operation_command(operation: Operation) -> Callable[[], None]:
    text = without_arguments(operation.help)
    return postponed(partial(_declare, operation), operation.method, text)


def _run(
    operation: Operation,
    corpus: str,
    database_url: str | None = None,
    form: Format = Format.TABLE,
    yes: bool = False,
    create: bool = False,
    **arguments: Any,
) -> None:
    asks, preview = operation.asks, operation.preview
    if operation.asks_for and not any(map(arguments.get, operation.asks_for)):
        asks = ""
    for name, (_, variant) in operation.variants.items():
        if arguments.pop(name):
            operation = variant
    if "file" in arguments:
        arguments["text"] = searched_text(arguments["text"], arguments.pop("file"))
    with ExitStack() as stack:
        db = stack.enter_context(connect(database_url))
        if operation.creates:
            has_scope = arguments["scope"] is not None
            opened = stack.enter_context(opened_or_created(db, corpus, create, has_scope))
        else:
            opened = db.corpus(corpus, on_server=not operation.computes)
        if preview and not yes:
            preview(opened, arguments)
        if asks:
            confirm(asks.format(corpus=shown(corpus)), yes)
        method = partial(getattr(opened, operation.method), **arguments)
        start = time.monotonic()
        if operation.progress:
            with progress(*operation.progress) as show_done:
                takes_it = "progress" in inspect.signature(method).parameters
                result = method(progress=show_done) if takes_it else method()
        else:
            result = method()
        seconds = time.monotonic() - start
        call = Call(operation, opened, arguments, form, result, seconds)
        if operation.show:
            operation.show(call)
        elif operation.done:
            call.print_done()
        else:
            call.write_rows()


def _declare(operation: Operation) -> Callable[..., None]:
    """Return the function of the command: its parameters are made from those of the method."""
    from textsim_db.corpus import Corpus

    method, own = getattr(Corpus, operation.method), inspect.signature(_run).parameters
    texts = help_of(Corpus.query) | help_of(Corpus.judge) | help_of(method)
    texts |= read_help(options.SHARED) | {"text": Help(_TEXT)} | read_help(operation.help)
    texts |= {name: Help(text) for name, (text, _) in operation.variants.items()}
    parameters = [parameter(own["corpus"], texts, is_argument=True)]
    for argument in [*inspect.signature(method).parameters.values()][1:]:
        name = argument.name
        if name in _FUNCTIONS or name in operation.leaves_out:
            continue
        is_searched = name == "text" and argument.annotation == "str"
        default = None if is_searched else operation.defaults.get(name, argument.default)
        is_argument = argument.default is argument.empty or name in operation.arguments
        parameters.append(parameter(argument.replace(default=default), texts, is_argument))
        if is_searched:
            parameters.append(parameter(_FILE, texts))
    flag = own["yes"]
    if operation.creates:
        parameters.append(parameter(own["create"], texts))
    parameters += [parameter(flag.replace(name=each), texts) for each in operation.variants]
    if operation.asks:
        parameters.append(parameter(flag, texts))
    if operation.columns or operation.variants:
        parameters.append(parameter(own["form"], texts))
    parameters.append(parameter(own["database_url"], texts))
    return with_parameters(partial(_run, operation), parameters)


def _column_of(measure: str) -> tuple[str, bool]:
    """Return the name of the column with the values of a measure, and whether they are distances."""
    if measure == JACCARD_NAME:
        return "similarity", False
    from textsim_db.measures.by_name import measure_of

    return measure_of(measure).name, measure_of(measure).is_distance


def note_unknown_scope(corpus: Corpus, scope: str | None) -> None:
    """After an empty result, say whether any document has the scope: a misspelt scope finds nothing."""
    if scope is None:
        return
    if corpus.status().indexed > _MOST_READ_FOR_SCOPES:
        print_message(f"to list the scopes: textsim status {corpus.name} --scopes")
        return
    scopes = [each.scope for each in corpus.scopes()]
    if scope not in scopes:
        message = f'no document has the scope "{shown(scope)}"{suggestion(scope, scopes)}'
        print_message(message, logging.WARNING)
