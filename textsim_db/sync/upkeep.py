"""Updates tracked clusters and removes expired documents, between the changes that a worker indexes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, LiteralString

from psycopg import errors as pg

from textsim_db.db import stored_corpus
from textsim_db.db.engine import configuration_errors, read_rows, transaction
from textsim_db.db.retries import Attempts
from textsim_db.db.store import KnownWords, Store
from textsim_db.errors import CorpusNotFound
from textsim_db.files.arrow_frames import ResultColumns, columns_of
from textsim_db.results import ClusterEvent, Member
from textsim_db.settings.named_values import Linkage
from textsim_db.sync import statements
from textsim_db.sync.step_faults import StepFaults, step_of_corpus
from textsim_db.write.remove_documents import expire_some
from textsim_db.write.statements import EXPIRING_CORPORA, REPLACED_CORPORA
from textsim_db.write.temporary_corpora import drop_abandoned

if TYPE_CHECKING:
    from sqlalchemy import Engine

log = logging.getLogger(__name__)


UPDATE_SECONDS = 1.0
"""The seconds between two looks for outdated clusters, and the time that updates may take at once."""
EVENTS_SECONDS = 60.0
"""The seconds between two looks for old events."""
FETCHED_AT_ONCE = 10_000
_REFUSED = (
    *(pg.InvalidParameterValue, pg.FeatureNotSupported, pg.DuplicateObject),
    *(pg.ObjectInUse, pg.ObjectNotInPrerequisiteState, pg.DependentObjectsStillExist),
)
_PASSED_OVER = (pg.FeatureNotSupported, pg.LockNotAvailable)
"""The corpus is locked, or another version has created it."""


def track(
    store: Store,
    linkage: Linkage,
    threshold: float | None,
    mode: str,
    keep_events: timedelta | None,
) -> None:
    given = [store.corpus.name, linkage, threshold, mode, keep_events]
    with configuration_errors(*_REFUSED), transaction(store.engine) as connection:
        connection.execute(statements.TRACK, given)


def untrack(store: Store) -> None:
    with configuration_errors(*_REFUSED), transaction(store.engine) as connection:
        connection.execute(statements.UNTRACK, [store.corpus.name])


def update(store: Store) -> int:
    from textsim_db.sync import build_clusters

    with configuration_errors(*_REFUSED):
        updated = build_clusters.build(store, waits=True)
        while count := update_some(store.engine, store.corpus.name, waits=True):
            updated += count
    return updated


def update_some(engine: Engine, name: str, waits: bool) -> int:
    """Process some thousand documents; return 0 if another session does."""
    updated = 0
    for attempt in Attempts():
        with attempt, transaction(engine) as connection:
            row = connection.execute(statements.UPDATE_CLUSTERS, [name, waits]).fetchone()
            updated = 0 if row is None else int(row[0])
    return updated


def members(store: Store, key: str | None) -> Generator[ResultColumns, None, None]:
    """Yield the members of all clusters, or of the cluster of a document."""
    name = store.corpus.name
    statement = statements.MEMBERS if key is None else statements.MEMBERS_OF
    for rows in _fetched(store, "members", statement, [name] if key is None else [name, key]):
        yield columns_of(Member, rows)


def cluster_events(store: Store, after: int) -> Generator[ClusterEvent, None, None]:
    parameters = [store.corpus.name, after]
    for rows in _fetched(store, "events of clusters", statements.CLUSTER_EVENTS, parameters):
        yield from (ClusterEvent(*row) for row in rows)


def _fetched(
    store: Store, what: str, statement: LiteralString, parameters: Sequence[object]
) -> Iterator[list[tuple[Any, ...]]]:
    with (
        configuration_errors(*_REFUSED),
        transaction(store.engine) as connection,
        connection.cursor(store.corpus.label(what)) as cursor,
    ):
        cursor.execute(statement, parameters)
        while rows := cursor.fetchmany(FETCHED_AT_ONCE):
            yield rows


class OutdatedClusters:
    """The tracked corpora whose documents have changed, and whose clusters this role may write."""

    def __init__(self, engine: Engine, known_words: KnownWords, faults: StepFaults) -> None:
        self._engine = engine
        self._faults = faults
        self._known_words = known_words
        self._due_at = float("-inf")
        self._events_due_at = float("-inf")

    @property
    def is_due(self) -> bool:
        """Whether to look now: the last look was a second ago, or left outdated clusters."""
        return time.monotonic() >= self._due_at

    def update_some(self) -> int:
        """Update clusters for about a second, and return a number that is 0 if nothing is left to do."""
        start = time.monotonic()
        if start >= self._events_due_at:
            self._remove_old_events()
            pause = UPDATE_SECONDS if self._faults.is_settling else EVENTS_SECONDS
            self._events_due_at = start + pause
        total = 0
        while updated := self._update_each():
            total += updated
            if time.monotonic() >= start + UPDATE_SECONDS:
                return total
        self._due_at = time.monotonic() + UPDATE_SECONDS
        return total

    def _remove_old_events(self) -> None:
        """Remove the old events of all corpora, also of those that do not change."""
        for id_, name in read_rows(self._engine, statements.CORPORA_WITH_EVENTS):
            step = step_of_corpus("old events", id_, name, "are not removed")
            if self._faults.is_due(step):
                with self._faults.attempt(step), suppress(pg.LockNotAvailable):
                    read_rows(self._engine, statements.REMOVE_OLD_EVENTS, [id_])

    def _update_each(self) -> int:
        updated = 0
        for id_, name, waiting in read_rows(self._engine, statements.OUTDATED_CLUSTERS):
            step = step_of_corpus("clusters", id_, name, "are not updated")
            if self._faults.is_due(step):
                with self._faults.attempt(step), suppress(*_PASSED_OVER, CorpusNotFound):
                    updated += self._build(name, waiting) or update_some(self._engine, name, False)
        return updated

    def _build(self, name: str, waiting: int) -> int:
        from textsim_db.sync import build_clusters

        if waiting < build_clusters.LEAST_DOCUMENTS:
            return 0
        store = Store(self._engine, self._known_words, stored_corpus.load(self._engine, name))
        return build_clusters.build(store, waits=False)


REPLACED_SECONDS = 60.0
"""The seconds between two looks for replaced corpora."""


class ReplacedCorpora:
    """The corpora that rebuilds have replaced, and could not drop because transactions read them."""

    def __init__(self, engine: Engine, faults: StepFaults) -> None:
        self._engine = engine
        self._faults = faults
        self._due_at = float("-inf")

    def drop(self, is_last: bool) -> None:
        """Drop those that nobody reads, once a minute; is_last: now."""
        if not is_last and time.monotonic() < self._due_at:
            return
        for replaced, id_, name in read_rows(self._engine, REPLACED_CORPORA):
            step = step_of_corpus("replaced tables", id_, name, "are not dropped")
            if is_last or self._faults.is_due(step):
                with self._faults.attempt(step), suppress(CorpusNotFound):
                    drop_abandoned(self._engine, replaced)
        self._due_at = time.monotonic() + REPLACED_SECONDS


EXPIRY_SECONDS = 1.0
"""The seconds between two looks for expired documents."""
JUMP_SECONDS = 10.0
"""If the clock of the server gains or loses more between two looks, it has jumped."""


class ExpiredDocuments:
    """The documents whose time is over, in the corpora that this role may write.

    A document that was removed while the clock was ahead would be lost. So a look removes only what had
    expired at an earlier look, some time before, and the clock must not have jumped in between.
    """

    def __init__(
        self,
        engine: Engine,
        faults: StepFaults,
        after: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._faults = faults
        self._after = after
        self._clock = clock
        self._lead: float | None = None
        """How far the clock of the server was ahead of ours at the last look."""
        self._due_at = float("-inf")

    @property
    def is_due(self) -> bool:
        """Whether to look now: the last look was a second ago, or found documents."""
        return time.monotonic() >= self._due_at

    def remove_some(self) -> int:
        """Remove up to a thousand documents of each corpus, and return how many were removed."""
        asked_at = self._clock()
        corpora = read_rows(self._engine, EXPIRING_CORPORA)
        has_jumped = bool(corpora) and self._has_jumped(corpora[0][2], asked_at)
        removed = 0
        for id_, name, _ in corpora:
            step = step_of_corpus("expired documents", id_, name, "are not removed")
            if self._faults.is_due(step):
                # Another version may have created the corpus.
                with self._faults.attempt(step), suppress(pg.FeatureNotSupported):
                    removed += expire_some(self._engine, name, self._after, has_jumped)
        self._due_at = time.monotonic() + (0 if removed else EXPIRY_SECONDS)
        return removed

    def _has_jumped(self, server_seconds: float, asked_at: float) -> bool:
        """Return whether the clock of the server has jumped since the last look."""
        before, self._lead = self._lead, server_seconds - asked_at
        waited = self._clock() - asked_at
        return before is not None and abs(self._lead - before) > JUMP_SECONDS + waited
