"""The settings and the report of a worker; pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from textsim_db.errors import ConfigurationError
from textsim_db.results import ChangeReport
from textsim_db.settings import check_callable, is_number

POLL_SECONDS = 0.025
LEASE_SECONDS = 60.0


class WorkReport(NamedTuple):
    """The result of one transaction of a worker.

    corpus: the name of the corpus. table: the name of the attached table, None if the transaction gave
    word ids to documents that SQL had written. changes: the number of documents by outcome. seconds:
    the time from reading the rows to the COMMIT.
    """

    corpus: str
    table: str | None
    changes: ChangeReport
    seconds: float


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The arguments of Database.worker(); raises ConfigurationError if one is out of range.

    only_source: the number of the only source to index, None for all sources.
    """

    poll: float = POLL_SECONDS
    lease: float = LEASE_SECONDS
    listen: bool = False
    report: Callable[[WorkReport], None] | None = None
    only_source: int | None = None

    def __post_init__(self) -> None:
        check_callable(self.report, "report")
        for name, value in (("poll", self.poll), ("lease", self.lease)):
            if not is_number(value) or not 0 < value <= 86_400:
                raise ConfigurationError(
                    f"{name} is {value!r}; expected seconds above 0, at most 86400"
                )
