"""Reviewed: the documents, pairs and judgements that the pages show, wherever they are stored.

Nobody overwrites a verdict that they have not seen, and every verdict can be undone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from typing import NamedTuple, Protocol

from textsim_db.errors import JudgementExists
from textsim_db.read.documents_by_key import RandomMatches, Traits
from textsim_db.results import Inspection, Judgement, Pair
from textsim_db.review.reviewed_clusters import StoredClusters

JudgedPair = tuple[str, str, str, str | None]
"""Two keys, the verdict and the note."""


class Text(NamedTuple):
    """The text of a document."""

    text: str
    is_original: bool
    """Whether it is the text of its source; otherwise it is the normal form."""


class NextCommand(NamedTuple):
    """A command that a page advises."""

    purpose: str
    command: str
    effect: str
    """When to choose it, and what it changes, in sentences."""


class JudgementStore(Protocol):
    """Stores judgements of pairs: a corpus, or a file."""

    def judgements(self) -> Iterable[Judgement]:
        """Return all judgements."""
        ...

    def judge(
        self, a: str, b: str, verdict: str, note: str | None = None, *, replaces: str | None = None
    ) -> bool:
        """Record a judgement and return whether it is new; raises JudgementExists."""
        ...

    def judge_many(
        self,
        judgements: Iterable[JudgedPair],
        replace: bool = False,
        place_of: Callable[[int], str] | None = None,
    ) -> int:
        """Record judgements, all or none, and return how many are new."""
        ...

    def unjudge(self, a: str, b: str) -> bool:
        """Remove a judgement, and return whether there was one."""
        ...


class Reviewed(Protocol):
    """The documents that are reviewed, and what people said of them."""

    name: str
    threshold: float
    """The threshold that is in use."""
    incomplete_below: float | None
    """Below this similarity only a part of the pairs is found; None if all pairs are found."""
    facts: Mapping[str, str]
    """Other facts for the overview, by title."""
    kept: Collection[str]
    """The keys that a finished dedupe kept: each represents its cluster."""

    @property
    def is_rebuilt(self) -> bool:
        """Whether the corpus was rebuilt after this review began."""
        ...

    @property
    def judgement_store(self) -> JudgementStore:
        """The store of the judgements of the pairs."""
        ...

    def count(self) -> int:
        """Return the number of documents."""
        ...

    def random_matches(self) -> RandomMatches | None:
        """Return the matches of some documents within a moment; None if all pairs come as fast."""
        ...

    def pairs(self) -> Generator[Pair, None, None]:
        """Yield all pairs."""
        ...

    def traits(self, keys: list[str]) -> dict[str, Traits]:
        """Return the languages and scopes of the documents that exist."""
        ...

    def texts(self, keys: list[str]) -> dict[str, Text]:
        """Return the texts of the documents that exist."""
        ...

    def stored_clusters(self) -> StoredClusters | None:
        """Return the clusters of a tracked corpus; None if no corpus is."""
        ...

    def inspect(self, keys: list[str]) -> Inspection | None:
        """Return what holds a cluster together; None if that is unknown here."""
        ...

    def commands(self, threshold: float) -> list[NextCommand]:
        """Return the commands that make use of a threshold."""
        ...

    def template_commands(self) -> list[NextCommand]:
        """Return the commands that leave the words of a template out."""
        ...


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
        """Return all judgements, also the judgements of other people."""
        return {(judgement.a, judgement.b): judgement for judgement in self._store.judgements()}

    def judge(self, a: str, b: str, verdict: str, note: str | None, seen: str) -> None:
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
                verdict, note = before.verdict, before.note
                self._store.judge(now.a, now.b, verdict, note, replaces=now.verdict)
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
