"""Entries of the log that crash workers: each is split into its keys, and at last a key fails."""

from __future__ import annotations

import logging

from sqlalchemy import Engine

from textsim_db.db.engine import transaction
from textsim_db.sync import statements
from textsim_db.sync.leases import LogEntry

log = logging.getLogger(__name__)

SPLIT_TRIES = 3
"""If workers claimed an entry this often and never finished it, it is split into its keys."""
FAIL_TRIES = 8
"""If workers claimed an entry this often and died before they finished it, it fails."""


def set_aside(engine: Engine, entry: LogEntry) -> bool:
    """Split an entry, or let it fail, if workers claimed it too often; return whether they did."""
    if entry.tries > FAIL_TRIES:
        _fail(engine, entry)
    elif entry.keys is not None and len(entry.keys) > 1 and entry.tries > SPLIT_TRIES:
        with transaction(engine) as connection:
            connection.execute(statements.SPLIT, [entry.id])
    else:
        return False
    return True


def _fail(engine: Engine, entry: LogEntry) -> None:
    """Let an entry fail; no worker claims it again."""
    reason = f"a worker ended {FAIL_TRIES} times while it was indexing this entry"
    with transaction(engine) as connection:
        connection.execute(statements.FAIL_ENTRY, [reason, entry.id])
    fields = {"corpus_id": entry.corpus_id, "keys": entry.keys, "reason": reason}
    log.error("set aside an entry: %s", reason, extra=fields)
