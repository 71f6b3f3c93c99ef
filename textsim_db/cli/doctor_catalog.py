"""Checks of objects by textsim doctor: functions, tables and indexes are as they were created."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from textsim_db.cli.findings import Finding, fault, ok
from textsim_db.errors import shown

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from textsim_db.results import Problem

_SHOWN = 20
"""The most findings of one check; a dropped schema would print hundreds."""


def find_installation(engine: Engine) -> Iterator[Finding]:
    """Yield the objects of the schema that are missing or changed."""
    from textsim_db.read import check_catalog

    problems = check_catalog.check_installation(engine)
    yield from findings(problems)
    if not problems:
        yield ok("all functions, tables and indexes of the schema are as they were installed")


def find_objects(engine: Engine, corpus: str) -> Iterator[Finding]:
    """Yield the settings, tables, indexes and functions of a corpus that are missing or changed."""
    from textsim_db.db import stored_corpus
    from textsim_db.read import check_catalog

    stored = stored_corpus.load_unchecked(engine, corpus)
    yield from findings(check_catalog.check_objects(engine, stored), f'corpus "{corpus}": ')


def findings(problems: list[Problem], begin: str = "") -> Iterator[Finding]:
    """Yield a fault for each problem, up to a number."""
    for problem in problems[:_SHOWN]:
        fact = f"{begin}{problem.kind} {problem.subject}: {problem.detail}"
        yield fault(shown(fact), problem.remedy)
    if len(problems) > _SHOWN:
        more = len(problems) - _SHOWN
        yield fault(f"{begin}{more} more faults of this kind", "textsim check lists them")
