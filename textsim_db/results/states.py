"""The state of corpora, attached tables and workers, and what is wrong with them."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

IDLE = "waits for changes"
"""The step of a worker that waits for changes."""


class Problem(NamedTuple):
    """A stored row or an object of the database that is not as it should be."""

    kind: str
    """The invariant or the kind of object, such as "signature", "missing band row" or "index"."""
    subject: str
    """The key of the document, the word, the table or the object."""
    detail: str
    """The expected and the stored state."""
    remedy: str
    """The command or the SQL that mends it."""


class Status(NamedTuple):
    """How many documents of a corpus and its attached tables are indexed, pending or failed."""

    indexed: int
    """The documents in the index."""
    pending: int
    """The documents to index."""
    oldest_pending: datetime | None
    """The time of the oldest pending change, or None."""
    failed: int
    """The documents that were set aside with an error."""
    is_estimate: bool
    """Whether `pending` or `as_text` is an estimate.

    It is one above ten thousand changes, and while a table is compared with the corpus.
    """
    problems: list[str]
    """The reasons why attached tables are not kept indexed, such as a disabled trigger."""
    as_text: int
    """The documents in the log that are stored as text.

    They are complete; a worker or `index_pending` gives their words ids, which save space. Removed
    documents may count too.
    """
    saved_by_ids: int
    """About how many bytes the ids would save."""
    linkage: str | None
    """The linkage of the tracked clusters; None if the corpus is not tracked."""
    tracked_threshold: float | None
    """The least similarity of a match in the tracked clusters; None if the corpus is not tracked."""
    outdated: int
    """The documents that have changed since the tracked clusters were updated."""
    outdated_since: datetime | None
    """The time of the first of these changes, or None."""
    crowded: int
    """The texts of the tracked clusters that have too many candidates, of which not all count."""
    indexed_is_estimate: bool
    """Whether `indexed` is an estimate: above ten thousand documents."""
    notes: list[str]
    """The tables that a worker compares with their documents, such as after a restore, and why."""
    lag: float | None
    """Seconds since the oldest pending change, by the server's clock; None if none is pending."""
    cluster_lag: float | None
    """Seconds since the first change that the tracked clusters lack; None if they lack none."""
    written: int
    """The documents that all clients have written so far.

    The server counts them with a delay of a second, and starts at 0 after a crash or a rebuild. Two
    readings give a rate.
    """


class ScopeStatus(NamedTuple):
    """How many documents a scope has."""

    scope: str
    indexed: int
    """The documents in the index."""
    as_text: int
    """The documents among them whose words wait for ids."""


class WorkerState(NamedTuple):
    """The progress of a running worker. Times are seconds ago, by the server's clock; None if never."""

    host: str
    process: int
    reported: float
    """Its last report. A worker reports every 5 seconds, if it can write."""
    claimed: float | None
    """When it last looked for pending changes."""
    wrote: float | None
    """The end of its last write."""
    step: str
    step_seconds: float
    """How long the step has lasted so far."""
    error: str | None
    failed: float | None
    """When its last error was."""

    @property
    def is_busy(self) -> bool:
        """Whether it does something, and does not wait for changes."""
        return self.step != IDLE


class Metric(NamedTuple):
    """A figure for a monitoring system, in the names of Prometheus."""

    name: str
    """The name; a name that ends in `_total` is a counter, every other one a gauge."""
    labels: dict[str, str]
    """The corpus, and the kind or the state; or the worker, as host:process."""
    value: float
    """The value; times are seconds since 1970."""
    help: str


class CorpusSummary(NamedTuple):
    """The settings of a corpus that decide its matches and its merges."""

    shingle: str
    """The unit of comparison, such as "word:3"."""
    threshold: float
    recall: float
    """The share of matches that is found at the threshold; 1 in an exact corpus."""
    guards: tuple[str, ...]
    """The kinds of words that two documents must share to be merged."""
    scoped: bool
    """Whether documents of different scopes never meet."""
    is_unique: bool
    """Whether it keeps near-duplicates out."""


class Drift(NamedTuple):
    """A document that differs between a corpus and its table."""

    key: str
    kind: str
    """The difference: "missing" (only in the table), "different", or "surplus" (only in the corpus)."""


class Failure(NamedTuple):
    """A document that was set aside."""

    key: str | None
    """The key of the document; None if comparing a whole table failed."""
    table: str | None
    """The attached table, or None if a client added the document."""
    tries: int
    error: str


class Source(NamedTuple):
    """An attached table, which is kept indexed."""

    corpus: str
    table: str
    key_columns: tuple[str, ...]
    """The columns of the keys, whose values are joined as by `join_key`."""
    text: str
    scope: str | None
    """The column of the scopes; None if the corpus is not scoped."""
    mode: str
    """The mode, "queue" or "inline"; see `Mode`."""
    time: str | None
    """The column of the times from which documents count for `keep_for`; or None."""
    expires: str | None
    """The column of the times from which documents no longer count; or None."""
    row_filter: str | None
    """The condition on the rows that have a document; None: every row."""
