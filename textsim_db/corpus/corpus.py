"""Corpus: the object through which a user adds, searches and compares documents.

load_modules: the modules that add and search, imported before a corpus is created.

An interrupt during an import can fail in many ways, so it must not come after a corpus is stored.

ManagedCorpus: the methods of a corpus that need no signature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Protocol

from textsim_db.corpus.cluster_methods import ClusterMethods, TrackingMethods
from textsim_db.corpus.document_methods import DocumentMethods, JudgementMethods
from textsim_db.corpus.passage_methods import PassageMethods
from textsim_db.corpus.report_methods import StatisticMethods, StatusMethods
from textsim_db.corpus.search_methods import SearchMethods
from textsim_db.corpus.source_methods import RebuildMethods, TableMethods
from textsim_db.files.arrow_results import Results
from textsim_db.results import (
    Activity,
    Failure,
    Judgement,
    Member,
    ScopeStatus,
    Status,
)
from textsim_db.settings.corpus_settings import CorpusConfig
from textsim_db.write.document_inputs import Key


def load_modules() -> None:
    """Import the modules that add and search."""
    for name in ("write.load_batches", "read.list_clusters", "read.search"):
        import_module(f"textsim_db.{name}")


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


class Corpus(  # the reference lists the methods of the last class first
    RebuildMethods,
    TrackingMethods,
    TableMethods,
    StatusMethods,
    StatisticMethods,
    JudgementMethods,
    ClusterMethods,
    PassageMethods,
    SearchMethods,
    DocumentMethods,
):
    """A named collection of documents with one configuration.

    Database.create_corpus() and Database.corpus() return it. Threads may share a corpus. Every method
    that reaches the database raises DatabaseError if a statement fails, and DatabaseUnavailable if
    there is no connection.

    Examples:
        The examples of the methods use this corpus:

        >>> import textsim_db
        >>> db = textsim_db.connect()
        >>> corpus = db.create_corpus("news", threshold=0.6)
        >>> report = corpus.add_many({
        ...     "monday": "The city council approved the new budget for schools on Monday evening.",
        ...     "update": "The city council approved the new budget for schools on Monday.",
        ...     "recipe": "Whisk two eggs with sugar and fold in the sifted flour.",
        ... })
        >>> report
        AddReport(added=3, replaced=0, unchanged=0, repeated_keys=0, refused=[], twins=[])
    """

    def __repr__(self) -> str:
        config = self.config
        return (
            f"Corpus({self.name!r}, shingle={str(config.shingle)!r}, threshold={config.threshold}, "
            f"bands={config.bands}, rows={config.rows})"
        )
