"""textsim demo: find copied functions in the Python standard library."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from textsim_db.cli.opening import connect
from textsim_db.cli.output import console, table
from textsim_db.errors import TextsimError
from textsim_db.results.shown_values import count

if TYPE_CHECKING:
    from rich.console import Console

    from textsim_db.corpus.database import Database
    from textsim_db.results import Cluster

CORPUS = "demo-python-stdlib"
_EDITED = "bisect.py:bisect_left"
_EXAMPLES, _KEYS_OF_EXAMPLE = 15, 3
_THRESHOLD = 0.6
_SHORTEST = 400
"""The characters of the shortest function that is compared: shorter ones say the same by chance."""
_LEFT_OUT = {"site-packages", "dist-packages", "__pycache__", "test", "tests", "idle_test"}
_FUNCTION = re.compile(r"^( *)(?:async )?def (\w+).*(?:\n(?:\1 +.*|\1\).*| *))*", re.MULTILINE)
"""Matches a function with all lines that are indented further."""


def demo(*, database_url: str | None = None) -> None:
    """Find copied functions in the Python standard library.

    It indexes the functions in the corpus demo-python-stdlib, prints the clusters of near-duplicates,
    searches for an edited function, and prints commands to try next. Each run replaces this corpus. The
    first run compiles the kernels that it uses; textsim warm compiles the others.

    Example: `textsim demo`
    """
    out = console()
    with _timed(out, "connect") as results:
        db = connect(database_url)
        with db.engine.connect() as connection:
            version = connection.exec_driver_sql("SHOW server_version").scalar_one()
        results.append(f"PostgreSQL {version}")
    with db:
        _run(out, db, Path(os.__file__).parent)
    _print_next(out, database_url)


def _functions_in(library: Path) -> Iterator[tuple[str, str]]:
    """Yield the functions of the standard library as (key, text)."""
    for parent, folders, names in os.walk(library):
        folders[:] = sorted(set(folders) - _LEFT_OUT)
        for name in sorted(names):
            path = Path(parent, name)
            if path.suffix != ".py" or not path.is_file():
                continue
            for function in _FUNCTION.finditer(path.read_text("utf-8", "replace")):
                if len(function[0]) >= _SHORTEST:
                    module = path.relative_to(library).as_posix()
                    yield f"{module}:{function[2]}", function[0].strip()


@contextmanager
def _timed(out: Console, step: str) -> Iterator[list[str]]:
    results: list[str] = []
    start = time.perf_counter()
    yield results
    seconds = time.perf_counter() - start
    out.print(f"{step:<10}{seconds:>7.2f} s   {'; '.join(results)}", highlight=False)


def _run(out: Console, db: Database, library: Path) -> None:
    if CORPUS in db.corpora():
        db.drop_corpus(CORPUS)
    corpus = db.create_corpus(CORPUS, threshold=_THRESHOLD, recall=1)
    with _timed(out, "index") as results:
        functions = dict(_functions_in(library))
        report = corpus.add_many(functions.items())
        if not report.stored:
            raise TextsimError(f"there are no source files of Python in {library}")
        results.append(f"{count(report.stored, 'function')} of {library}")
    with _timed(out, "clusters") as results:
        clusters = list(corpus.clusters())
        documents = sum(len(cluster.keys) for cluster in clusters)
        results.append(f"{count(len(clusters), 'cluster')} with {count(documents, 'function')}")
    with _timed(out, "query") as results:
        matches = corpus.query(re.sub(r"\bmid\b", "middle", functions[_EDITED]), max_results=5)
        results.append(f"{_EDITED} with another name of a variable")
    with _timed(out, "check") as results:
        problems = corpus.check()
        results.append(count(len(problems), "problem") if problems else "no problem found")
    _print_clusters(out, clusters)
    out.print(f"\nSimilar to the edited {_EDITED}, at {_THRESHOLD} or more", style="bold")
    rows = [(match.similarity, match.key) for match in matches]
    out.print(table(("similarity", "function"), rows))


def _print_clusters(out: Console, clusters: list[Cluster[str]]) -> None:
    shown = clusters[:_EXAMPLES]
    which = "" if len(shown) == len(clusters) else f", the {len(shown)} largest of {len(clusters)}"
    out.print(f"\nClusters of near-duplicates, at {_THRESHOLD} or more{which}", style="bold")
    rows = [(len(c.keys), c.weakest, _shortened(c.keys)) for c in shown]
    out.print(table(("size", "weakest", "functions"), rows))


def _shortened(keys: tuple[str, ...]) -> str:
    rest = f" and {len(keys) - _KEYS_OF_EXAMPLE} more" if len(keys) > _KEYS_OF_EXAMPLE else ""
    return ", ".join(keys[:_KEYS_OF_EXAMPLE]) + rest


def _print_next(out: Console, database_url: str | None) -> None:
    from textsim_db.base.numba_compiler import are_compiled

    textsim = _program()
    if database_url:
        textsim += f" --database-url {shlex.quote(database_url)}"
    lines = [
        f"{textsim} neighbours {CORPUS} {_EDITED}",
        f"{textsim} pairs {CORPUS} --threshold 0.9 --format csv",
        f'psql "$({textsim} db url)" -c "SELECT name, threshold, bands, rows FROM textsim.corpus"',
        f"{textsim} corpus drop {CORPUS} --yes",
    ]
    out.print("\nTo try next", style="bold")
    if not are_compiled():
        lines.insert(
            0, f"{textsim} warm    # compiles the other kernels, so that no later command has to"
        )
    for line in lines:
        out.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)


def _program() -> str:
    """Return the name by which the user runs this program, quoted for a shell."""
    name = sys.argv[0]
    if PurePath(name).name != "textsim":
        return f"{shlex.quote(sys.executable)} -m textsim_db.cli"
    on_path = shutil.which("textsim")
    return "textsim" if on_path and PurePath(on_path) == PurePath(name) else shlex.quote(name)
