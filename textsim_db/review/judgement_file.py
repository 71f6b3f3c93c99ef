"""Judgements in a file of JSON lines, for documents that no corpus has.

`textsim judgements list --format jsonl` writes such a file, and `textsim dedupe --judgements` reads it.
"""

from __future__ import annotations

import fcntl
import getpass
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from textsim_db.errors import InputError, JudgementExists, shown
from textsim_db.files.replace_file import replacing
from textsim_db.results import Judgement
from textsim_db.review.reviewed import JudgedPair

_MOST_NOTE = 10_000
"""The bytes of a note, as in a corpus."""

Stored = dict[tuple[str, str], Judgement]


class JudgementFile:
    """Reads the file for each call, and replaces it whole, so that several processes may judge."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.read()

    def read(self) -> Stored:
        """Return the judgements by their pairs; raises InputError with the line of a faulty one."""
        try:
            lines = Path(self.path).read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return {}
        except UnicodeDecodeError as error:
            raise InputError(f"{shown(self.path)}: {error}") from error
        stored = {}
        for number, line in enumerate(lines, 1):
            try:
                judgement = _judgement(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise InputError(
                    f"{shown(self.path)}, line {number} is no judgement, as textsim judgements list "
                    "--format jsonl writes it"
                ) from error
            stored[judgement.a, judgement.b] = judgement
        return stored

    def judgements(self) -> Iterable[Judgement]:
        """Return all judgements."""
        return self.read().values()

    def judge(
        self, a: str, b: str, verdict: str, note: str | None = None, *, replaces: str | None = None
    ) -> bool:
        """Record a judgement and return whether it is new; raises JudgementExists as Corpus.judge."""
        with self._changing() as stored:
            return _record(stored, (a, b, verdict, note), replaces)

    def judge_many(
        self,
        judgements: Iterable[JudgedPair],
        replace: bool = False,
        place_of: Callable[[int], str] | None = None,
    ) -> int:
        """Record judgements, all or none, and return how many are new."""
        with self._changing() as stored:
            count = 0
            for number, given in enumerate(judgements):
                before = stored.get((min(given[:2]), max(given[:2])))
                try:
                    count += _record(stored, given, before.verdict if before and replace else None)
                except (JudgementExists, InputError) as error:
                    place = place_of(number) if place_of else f"judgement {number + 1}"
                    raise type(error)(f"{place}: {error}") from error
            return count

    def unjudge(self, a: str, b: str) -> bool:
        """Remove a judgement, and return whether there was one."""
        with self._changing() as stored:
            return stored.pop((min(a, b), max(a, b)), None) is not None

    @contextmanager
    def _changing(self) -> Iterator[Stored]:
        """Lend the judgements to change, while no other process changes them."""
        # The file is replaced, so a lock on it would be a lock on the old file.
        folder = os.open(Path(self.path).resolve().parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            stored = self.read()
            before = dict(stored)
            yield stored
            if stored != before:
                self._write(stored)
        finally:
            os.close(folder)

    def _write(self, stored: Stored) -> None:
        with replacing(self.path) as file:
            for _, judgement in sorted(stored.items()):
                fields = {**judgement._asdict(), "judged_at": judgement.judged_at.isoformat()}
                file.write(json.dumps(fields, ensure_ascii=True).encode() + b"\n")


def _record(stored: Stored, given: JudgedPair, replaces: str | None) -> bool:
    first, second, verdict, note = given
    a, b = min(first, second), max(first, second)
    if note is not None and len(note.encode(errors="replace")) > _MOST_NOTE:
        raise InputError(f"the note is longer than {_MOST_NOTE:,} bytes")
    before = stored.get((a, b))
    if before is not None and (before.verdict, before.note) == (verdict, note):
        return False
    if before is not None and before.verdict != replaces:
        raise JudgementExists(f"{before.judged_by} has judged the pair {before.verdict}")
    stored[a, b] = Judgement(a, b, verdict, getpass.getuser(), datetime.now(UTC), note)
    return True


def _judgement(values: dict[str, str]) -> Judgement:
    a, b = sorted((values["a"], values["b"]))
    judged_at = datetime.fromisoformat(values["judged_at"])
    by, note = str(values["judged_by"]), values.get("note")
    return Judgement(a, b, values["verdict"], by, judged_at, note)
