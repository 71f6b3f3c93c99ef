"""Findings of textsim doctor: facts, each with a command or change if the fact is a fault."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    """How much a fact matters."""

    OK = "ok"
    """All is as it should be."""
    NOTE = "note"
    """The user should know it."""
    FAULT = "fault"
    """The user has something to do."""


class Finding(NamedTuple):
    """One fact, and the command or change that mends it."""

    level: Level
    fact: str
    remedy: str | None = None


def ok(fact: str) -> Finding:
    """Return a fact that is as it should be."""
    return Finding(Level.OK, fact)


def note(fact: str, remedy: str | None = None) -> Finding:
    """Return a fact that is worth knowing, and how to change it."""
    return Finding(Level.NOTE, fact, remedy)


def fault(fact: str, remedy: str) -> Finding:
    """Return a fact that is a fault, and what mends it."""
    return Finding(Level.FAULT, fact, remedy)
