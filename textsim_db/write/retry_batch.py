"""Writes a batch, and tries again after a collision, a lost connection or a time-out."""

from __future__ import annotations

from functools import reduce

import numpy as np

from textsim_db.db.engine import transaction
from textsim_db.db.store import Store
from textsim_db.write import write_batch
from textsim_db.write.batches import attempts_of_writer, queue
from textsim_db.write.detect_changes import EXTENDED, TWIN, UNCHANGED, StoredByKey
from textsim_db.write.prepare_batches import Batch, part_of
from textsim_db.write.write_batch import Written


def write_or_retry(
    store: Store, batch: Batch, are_new: bool = False, unique_from: float = 0
) -> Written:
    """Write a batch, in halves if it exceeds the server's time limit; return the outcomes.

    are_new: the keys are probably new, so the first attempt does not look them up. If another session
    has added one of them, the server reports a unique violation, and the next attempt looks them up.
    unique_from: the similarity from which on a unique corpus leaves a twin out; 0: any twin.
    """
    written = Written(np.empty(len(batch.keys), np.int8), [])
    for attempt in attempts_of_writer(store, batch.keys):
        part = part_of(batch, attempt.part)
        locked: StoredByKey | None = {} if are_new and not attempt.failures else None
        with attempt:
            with transaction(store.engine) as connection:
                cursor = connection.cursor(binary=True)
                queue(connection, store, attempt)
                attempt.results.append(
                    write_batch.write(cursor, store, part, locked=locked, unique_from=unique_from)
                )
            outcomes, twins = reduce(_outcomes_of_both, attempt.results)
            written.outcomes[attempt.part] = outcomes
            written.twins.extend(
                twin._replace(place=twin.place + attempt.part.start) for twin in twins
            )
    return written


def _outcomes_of_both(before: Written, now: Written) -> Written:
    """Return the outcomes of a batch that was attempted twice.

    If the second attempt finds a document unchanged, the first attempt was committed, or the document
    was unchanged then too. So the first outcome is right, except that of a twin.
    """
    is_same = np.isin(now.outcomes, (UNCHANGED, EXTENDED))
    is_first = is_same & (before.outcomes != TWIN)
    return Written(np.where(is_first, before.outcomes, now.outcomes), now.twins)
