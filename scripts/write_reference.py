"""Write the reference in docs/reference: the commands, SQL from the catalog, Python from docstrings."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any

import psycopg
import typer.main

import textsim_db
from scripts.python_reference import python_texts
from scripts.sql_reference import sql_texts
from textsim_db.cli import app, command_types
from textsim_db.db import embedded_server

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
_EXAMPLES_OF_HELP = re.compile(r"^Examples?:(.*)", re.S | re.M)
_SECTIONS = re.compile(r"^(?=#{2,3} )", re.M)
_EXAMPLES = re.compile(r"^(```|<!-- (not )?run)", re.M)
_OPERATORS = {">", "|", "<", "&&", ";"}
_COMMON = ("database_url", "as_json", "log_json", "log_level", "help")
_SEVERAL = "Options of several commands"
_ANCHOR = _SEVERAL.lower().replace(" ", "-")
_COMMANDS_INTRODUCTION = """\
# Commands

<!-- Written by python -m scripts.write_reference: change the help texts, not this page. -->

Results go to standard output, messages to standard error. Exit status: 0 if everything was done; 1 if
some records were refused or a check found something; 2 if nothing was done.

Every command has these options:
"""


def each_command(group: Any = None, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the name and the object of each command and group, such as "corpus" and "corpus list"."""
    group = group or typer.main.get_command(app)
    for name, command in group.commands.items():
        yield path + name, command
        if hasattr(command, "commands"):
            yield from each_command(command, f"{path}{name} ")


def examples(command: Any) -> list[str]:
    """Return the command lines of the examples that a help text ends with."""
    found = _EXAMPLES_OF_HELP.search(command.help or "")
    return re.findall(r"`([^`]+)`", found[1]) if found else []


def command_words(example: str) -> list[str]:
    """Return the words of a command line, without what the shell redirects or pipes."""
    lexer = shlex.shlex(example, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    for word in lexer:
        if word in _OPERATORS:
            break
        words.append(word)
    return words


def commands_page() -> str:
    """Return the page of the commands."""
    commands = dict(each_command())
    options = [
        *commands["query"].params,
        *command_types.declared_by(command_types.declare_json),
        *command_types.declared_by(command_types.declare_log_options),
    ]
    common = [option for option in options if option.name in _COMMON]
    shared = _shared_descriptions(commands.values())
    parts = [_COMMANDS_INTRODUCTION, _list(map(_parameter, common))]
    parts += [f"## {_SEVERAL}\n", _list(shared.values())]
    panels = dict.fromkeys(command.rich_help_panel for command in commands.values())
    for panel in filter(None, panels):
        parts.append(f"## {panel}\n")
        for name, command in commands.items():
            if commands[name.split()[0]].rich_help_panel == panel:
                parts += _command_parts(name, command, shared)
    return "\n".join(parts)


def _shared_descriptions(commands: Iterable[Any]) -> dict[str, str]:
    """Return the descriptions that several commands have, by the name of the option or argument.

    Descriptions that differ in the default only are one. Of two for one name, the more frequent counts.
    """
    texts = [
        (parameter.opts[0], _parameter(parameter))
        for command in commands
        if not hasattr(command, "commands")
        for parameter in _own_parameters(command)
    ]
    counts = Counter((name, _without_default(text)) for name, text in texts)
    shared: dict[str, str] = {}
    for name, text in texts:
        count = counts[name, _without_default(text)]
        if count > max(1, counts[name, _without_default(shared.get(name, ""))]):
            shared[name] = text
    return dict(sorted(shared.items(), key=lambda item: item[0].startswith("-")))


def _without_default(text: str) -> str:
    return text.partition(" Default:")[0]


def _command_parts(name: str, command: Any, shared: Mapping[str, str]) -> Iterator[str]:
    level = "#" * (2 + len(name.split()))
    yield f"{level} textsim {name}"
    if hasattr(command, "commands"):
        yield f"{command.help}\n"
        return
    words = ["textsim", name, "[OPTIONS]", *map(_argument_name, _arguments(command))]
    yield f"`{' '.join(words)}`\n"
    prose, heading, shown = command.help.strip().partition("\n\nExample")
    yield "\n\n".join(map(_paragraph, prose.split("\n\n"))) + "\n"
    options = {parameter.opts[0]: _parameter(parameter) for parameter in _own_parameters(command)}
    own = [text for option, text in options.items() if not _is_shared(text, shared.get(option))]
    named = [
        f"`{option}`"
        for option, text in options.items()
        if option.startswith("-") and _is_shared(text, shared.get(option))
    ]
    if named:
        own.append(f"[of several commands](#{_ANCHOR}): {', '.join(named)}.")
    if own:
        yield _list(own)
    if shown:
        yield _paragraph(f"{heading.strip()}{shown}") + "\n"


def _is_shared(text: str, shared: str | None) -> bool:
    if text.endswith(" Default: unchanged."):
        return _without_default(text) == _without_default(shared or "")
    return text == shared


def _own_parameters(command: Any) -> list[Any]:
    """Return the parameters that not every command has, arguments first."""
    own = [parameter for parameter in command.params if parameter.name not in _COMMON]
    return sorted(own, key=lambda parameter: parameter.param_type_name != "argument")


def _paragraph(text: str) -> str:
    """Return a paragraph of a help text on one line; a list needs an empty line before it."""
    head, dash, items = text.partition("\n- ")
    return " ".join(head.split()) + (f"\n\n- {items}" if dash else "")


def _arguments(command: Any) -> list[Any]:
    return [parameter for parameter in command.params if parameter.param_type_name == "argument"]


def _argument_name(argument: Any) -> str:
    name = f"{argument.metavar}{'...' if argument.nargs == -1 else ''}"
    return name if argument.required else f"[{name}]"


def _list(items: Iterable[str]) -> str:
    return "".join(f"- {item}\n" for item in items)


def _parameter(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{_argument_name(parameter)}`: {parameter.help}"
    value = "" if parameter.is_flag or parameter.name == "help" else f" {parameter.metavar}"
    forms = ", ".join(f"`{form}{value}`" for form in [*parameter.opts, *parameter.secondary_opts])
    default = "" if parameter.is_flag or parameter.default is None else parameter.default
    default = (
        ", ".join(default) if isinstance(default, list) else getattr(default, "value", default)
    )
    shown = f" Default: `{default}`." if default != "" else ""
    return f"{forms}: {parameter.help}{shown}"


def filled(page: str, texts: Mapping[str, str], names: Set[str]) -> str:
    """Return a page with the text below the heading of each name anew.

    The page is its own template: titles, the order of the names, introductions and examples are
    written in it.

    Args:
        page: the name of its file.
        texts: the texts by their headings.
        names: the headings that the page must have.

    Raises:
        ValueError: the page lacks a heading, or has one too many.
    """
    head, *sections = _SECTIONS.split((FOLDER / page).read_text(encoding="utf-8"))
    headings = {section.partition("\n")[0][4:] for section in sections if section[2] == "#"}
    if wrong := (names - headings) | (headings - texts.keys()):
        raise ValueError(f"{page} lacks a heading, or has one too many: {', '.join(sorted(wrong))}")
    return "".join([head, *(_filled(section, texts) for section in sections)]).rstrip() + "\n"


def _filled(section: str, texts: Mapping[str, str]) -> str:
    heading = section.partition("\n")[0]
    if heading.startswith("## "):
        return section
    examples = _EXAMPLES.search(section)
    tail = f"\n\n{section[examples.start() :].strip()}" if examples else ""
    return f"{heading}\n{texts[heading[4:]].strip()}{tail}\n\n"


def sql_page(database_url: str) -> str:
    """Return the page of SQL; the database has the schema."""
    with psycopg.connect(database_url) as connection:
        texts = sql_texts(connection)
    return filled("sql.md", texts, {name for name in texts if not name.startswith("table")})


def python_page() -> str:
    """Return the page of Python."""
    texts = python_texts()
    return filled("python.md", texts, texts.keys())


def main() -> None:
    """Write the three pages; the schema is installed into a new database of the embedded PostgreSQL."""
    name = "textsim_reference"
    address = embedded_server.start()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0")
        try:
            copy = address.replace(f"/{embedded_server.DATABASE}?", f"/{name}?")
            textsim_db.install(copy)
            pages = {
                "sql.md": sql_page(copy),
                "python.md": python_page(),
                "commands.md": commands_page(),
            }
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    pages["commands.md"] = commands_page()
    for page, text in pages.items():
        (FOLDER / page).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
