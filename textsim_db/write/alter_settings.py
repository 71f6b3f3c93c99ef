"""Changes settings of a corpus on which no stored row depends."""

from __future__ import annotations

from textsim_db.db import stored_corpus
from textsim_db.db.store import Store
from textsim_db.settings import CorpusConfig
from textsim_db.write.rebuild import lock_of_rebuilds


def alter(store: Store, config: CorpusConfig) -> None:
    """Store settings for which CorpusConfig.needs_rebuild() is false; raises CorpusBusy.

    A rebuild that runs meanwhile would replace them by the settings that it began with.
    """
    with lock_of_rebuilds(store):
        stored_corpus.alter(store.engine, store.corpus, config)
