"""Changes settings of a corpus on which no stored row depends."""

from __future__ import annotations

from textsim_db.db import stored_corpus
from textsim_db.db.engine import read_rows
from textsim_db.db.store import Store
from textsim_db.read.statements import IS_TRACKED
from textsim_db.settings import CorpusConfig
from textsim_db.write.rebuild import lock_of_rebuilds

FREE = frozenset({"recall", "is_unique"})
"""The settings on which no stored row depends. With bands, the threshold is one of them."""


def is_enough(store: Store, config: CorpusConfig) -> bool:
    """Return whether alter() can store these settings: no stored row depends on the changed settings.

    The matches of a tracked corpus depend on its threshold.
    """
    old = store.corpus.config
    if changes_rows(old, config):
        return False
    is_tracked = read_rows(store.engine, IS_TRACKED, [store.corpus.id]) == [(True,)]
    return old.threshold == config.threshold or not is_tracked


def alter(store: Store, config: CorpusConfig) -> None:
    """Store settings for which is_enough() is true; raises CorpusBusy.

    A rebuild that runs meanwhile would replace them by the settings that it began with.
    """
    with lock_of_rebuilds(store):
        stored_corpus.alter(store.engine, store.corpus, config)


def changes_rows(old: CorpusConfig, new: CorpusConfig) -> bool:
    """Return whether a change of settings changes stored rows, or needs a search for matches.

    The prefixes of an exact corpus depend on its threshold, but the buckets of bands do not. A corpus
    that becomes unique must have no matches at its threshold.
    """
    free = FREE if new.is_exact else FREE | {"threshold"}
    may_match = not old.is_unique or new.threshold < old.threshold
    return not free.issuperset(old.differences(new)) or (new.is_unique and may_match)
