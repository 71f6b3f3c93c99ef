"""Reviewed: the documents, pairs and judgements that the pages show, wherever they are stored."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from typing import NamedTuple, Protocol

from textsim_db.read.documents_by_key import RandomMatches, Traits
from textsim_db.results import Inspection, Judgement, Pair
from textsim_db.review.stored_clusters import StoredClusters

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
