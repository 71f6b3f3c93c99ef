"""The settings and the report of a worker; pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from textsim_db.check_values import as_float, check_callable, is_number
from textsim_db.errors import ConfigurationError
from textsim_db.results import ChangeReport

POLL_SECONDS = 0.025
LEASE_SECONDS = 60.0


class WorkReport(NamedTuple):
    """The result of one transaction of a worker."""

    corpus: str
    """The name of the corpus."""
    table: str | None
    """The name of the attached table; None if documents that SQL had written got word ids."""
    changes: ChangeReport
    """The number of documents by outcome."""
    seconds: float
    """The time from reading the rows to the COMMIT."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The arguments of Database.worker(); raises ConfigurationError if one is out of range."""

    poll: float = POLL_SECONDS
    """The seconds between two looks at an empty log."""
    lease: float = LEASE_SECONDS
    """The seconds after which other workers may claim an entry that this worker has claimed."""
    listen: bool = False
    """Whether notifications of the server wake the worker."""
    report: Callable[[WorkReport], None] | None = None
    """Called after each transaction."""
    only_source: int | None = None
    """The id of the only source to index, with the words of its corpus; None for all sources."""

    def __post_init__(self) -> None:
        check_callable(self.report, "report")
        for name, value in (("poll", self.poll), ("lease", self.lease)):
            if not is_number(value) or not 0 < as_float(value) <= 86_400:
                raise ConfigurationError(
                    f"{name} is {value!r}; expected seconds above 0, at most 86400"
                )
            object.__setattr__(self, name, as_float(value))
