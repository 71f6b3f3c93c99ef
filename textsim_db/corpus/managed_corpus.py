"""ManagedCorpus: the methods of a corpus that need no signature."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from textsim_db.frames.arrow_results import Results
from textsim_db.results import (
    Activity,
    Contradiction,
    Failure,
    Judgement,
    Member,
    ScopeStatus,
    Status,
)
from textsim_db.settings import CorpusConfig
from textsim_db.write.document_inputs import Key


class ManagedCorpus(Protocol):
    """The methods of a corpus that need no signature; Database.manage() returns it."""

    @property
    def name(self) -> str: ...  # noqa: D102 - Corpus documents them
    @property
    def config(self) -> CorpusConfig: ...  # noqa: D102
    def __len__(self) -> int: ...
    def __contains__(self, key: object) -> bool: ...
    def remove(self, keys: Iterable[Key]) -> int: ...  # noqa: D102
    def status(self) -> Status: ...  # noqa: D102
    def activity(self) -> Activity: ...  # noqa: D102
    def failures(self, last: int | None = None) -> list[Failure]: ...  # noqa: D102
    def retry_failures(self) -> int: ...  # noqa: D102
    def detach(self, table: str) -> None: ...  # noqa: D102
    def expire(self, progress: Callable[[int], None] | bool | None = None) -> int: ...  # noqa: D102
    def scopes(self) -> list[ScopeStatus]: ...  # noqa: D102
    def untrack(self) -> None: ...  # noqa: D102
    def members(self) -> Results[Member]: ...  # noqa: D102
    def members_of(self, key: Key) -> Results[Member]: ...  # noqa: D102
    def cluster_of(self, key: Key) -> Member | None: ...  # noqa: D102
    def judge(  # noqa: D102
        self, a: Key, b: Key, verdict: str, note: str | None = None, *, replaces: str | None = None
    ) -> bool: ...
    def judge_many(  # noqa: D102
        self,
        judgements: Iterable[tuple[Key, Key, str] | tuple[Key, Key, str, str | None]],
        replace: bool = False,
        place_of: Callable[[int], str] | None = None,
    ) -> int: ...
    def unjudge(self, a: Key, b: Key) -> bool: ...  # noqa: D102
    def judgements(self) -> Results[Judgement]: ...  # noqa: D102
    def contradictions(self) -> Results[Contradiction]: ...  # noqa: D102
