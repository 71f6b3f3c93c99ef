"""Reviewed: the documents, pairs and judgements that the pages show, wherever they are stored."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from textsim_db.errors import JudgementExists
from textsim_db.results import Judgement
from textsim_db.settings.named_values import VerdictName

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.review.corpus_documents import CorpusDocuments
    from textsim_db.review.report_documents import JudgementFile, ReportDocuments

JudgedPair = (
    tuple[str, str, VerdictName, str | None, str | None, float | None]
    | tuple[
        str,
        str,
        VerdictName,
        str | None,
        str | None,
        float | None,
        tuple[str | None, str | None] | None,
    ]
)
"""Two keys, the verdict, the note, the source, the confidence, and the hashes of the texts."""


class NextCommand(NamedTuple):
    purpose: str
    command: str
    effect: str
    """When to choose it, and what it changes, in sentences."""


Reviewed: TypeAlias = "CorpusDocuments | ReportDocuments"
"""The documents that are reviewed, and what people said of them."""
JudgementStore: TypeAlias = "Corpus | JudgementFile"
"""Stores judgements of pairs."""

GuardsApart: TypeAlias = Mapping[str, tuple[list[str], list[str]]]
"""The guards that differ between two documents, and what each alone has."""

_MOST_UNDONE = 1000

Judgements = dict[tuple[str, str], Judgement]
"""Judgements by their two keys."""


class Done(NamedTuple):
    """A judgement that was recorded here."""

    before: Judgement | None
    """The judgement that it replaced."""
    now: Judgement


def mark(judgement: Judgement | None) -> str:
    """Return what a form carries to say which judgement its user saw."""
    return "" if judgement is None else f"{judgement.verdict} {judgement.judged_at.isoformat()}"


class Judging:
    """Records the judgements of the pages of one server, and takes them back, the last one first."""

    def __init__(self, store: JudgementStore) -> None:
        self._store = store
        self._done: list[Done] = []
        self._lock = threading.Lock()

    @property
    def last(self) -> Judgement | None:
        """The last judgement that was recorded here and was not undone."""
        return self._done[-1].now if self._done else None

    def all(self) -> Judgements:
        return {(judgement.a, judgement.b): judgement for judgement in self._store.judgements()}

    def judge(self, a: str, b: str, verdict: VerdictName, note: str | None, seen: str) -> None:
        """Record a verdict; seen: the mark of the judgement that the user saw.

        Raises JudgementExists if the pair has another judgement by now.
        """
        a, b = min(a, b), max(a, b)
        with self._lock:
            before = self._checked(a, b, seen)
            self._store.judge(a, b, verdict, note, replaces=before.verdict if before else None)
            self._done = [*self._done, Done(before, self.all()[a, b])][-_MOST_UNDONE:]

    def undo(self) -> Judgement | None:
        """Restore what the last judgement replaced, and return that judgement; None without any.

        Raises JudgementExists if somebody has replaced it since; then it counts as undone.
        """
        with self._lock:
            if not self._done:
                return None
            before, now = self._done.pop()
            self._checked(now.a, now.b, mark(now))
            if before is None:
                self._store.unjudge(now.a, now.b)
            else:
                restored = (*before[:3], before.note, before.source, before.confidence)
                self._store.judge_many([(*restored, (before.hash_a, before.hash_b))], replace=True)
                self._restored(before)
            return now

    def _restored(self, before: Judgement) -> None:
        """Let the step that recorded a judgement be undone although the judgement has a new time."""
        steps = range(len(self._done) - 1, -1, -1)
        for i in steps:
            if self._done[i].now == before:
                stored = self.all()[before.a, before.b]
                self._done[i] = self._done[i]._replace(now=stored)

    def _checked(self, a: str, b: str, seen: str) -> Judgement | None:
        """Return the judgement of a pair, if it is the one that the user saw."""
        stored = self.all().get((a, b))
        if mark(stored) != seen:
            state = "removed the judgement" if stored is None else f"judged it {stored.verdict}"
            by = "somebody" if stored is None else stored.judged_by
            raise JudgementExists(f"{by} {state} meanwhile; your action was not recorded")
        return stored
