"""Learns from a sample of documents what is frozen with a corpus: common shingles and boilerplate.

An exact corpus and a corpus with passages learn their common shingles from the first load, or from what
they hold. A corpus learns its boilerplate from what it holds, by a rebuild.

The list is frozen with the corpus, because the rows of all documents depend on it. So an empty corpus
that learns a list is rebuilt, which gives it another id. Other sessions notice the id, and read the
list.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from psycopg import errors as pg

from textsim_db.db import stored_corpus
from textsim_db.db.engine import read_rows
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import CorpusBusy, CorpusChanged
from textsim_db.read.boilerplate_values import read_sample
from textsim_db.settings.corpus_settings import CorpusConfig, learns_common
from textsim_db.sketch.learned_shingles import (
    learn_boilerplate,
    learn_common,
)
from textsim_db.sketch.sketch_texts import without_boilerplate
from textsim_db.write import statements
from textsim_db.write.prepare_batches import learn_from_first
from textsim_db.write.rebuild import rebuild

log = logging.getLogger(__name__)

BUSY_SECONDS = 10.0
"""How long a first load waits for another session that rebuilds the empty corpus."""


def learn_from_load(
    store: Store, documents: Iterator[Any]
) -> tuple[StoredCorpus | None, Iterator[Any]]:
    """Let an empty corpus learn its common shingles from the first documents of a load.

    Returns the corpus that takes the place of this one, or None, and all the documents. Only the owner
    of a corpus can rebuild it, so a corpus learns nothing from the first load of another role. A tracked
    corpus learns nothing either.
    """
    corpus = store.corpus
    if not learns_common(corpus.config):
        return None, documents
    try:
        statement = corpus.statement(statements.IS_REPLACEABLE)
        if read_rows(store.engine, statement) != [(True,)]:
            return None, documents
    except pg.UndefinedTable:
        current = stored_corpus.load(store.engine, corpus.name)
        if current.origin != corpus.origin:  # a new corpus with the same name
            raise
        return current, documents  # the first load of another client has rebuilt it
    config, documents = learn_from_first(documents, corpus.config)
    lists = [each for each in (config.common, config.common_of_passages) if each is not None]
    if not lists:
        return None, documents
    count = sum(len(each.values) for each in lists)
    log.info(
        "corpus %s: learned %s common shingles",
        corpus.name,
        count,
        extra={"corpus": corpus.name, "shingles": count},
    )
    return _rebuilt(store, config), documents


def _rebuilt(store: Store, config: CorpusConfig) -> StoredCorpus | None:
    """Rebuild an empty corpus; if another session does, wait for it, and return what it has built.

    Loads that begin at once would all rebuild the corpus. Returns None if the other session takes longer
    than BUSY_SECONDS. Without a list, the corpus finds the same.
    """
    end = time.monotonic() + BUSY_SECONDS
    while time.monotonic() < end:
        try:
            return rebuild(store, config)
        except CorpusBusy:
            time.sleep(0.05)
        except CorpusChanged:
            corpus = stored_corpus.load(store.engine, store.corpus.name)
            if corpus.origin != store.corpus.origin:  # a new corpus with the same name
                raise
            return corpus
    return None


def learn_from_corpus(store: Store, config: CorpusConfig) -> CorpusConfig:
    """Return the configuration of a rebuild; it learns from the documents of the corpus."""
    config = replace(config, common=None, common_of_passages=None)
    if not learns_common(config) and not config.learns_boilerplate:
        return config
    tokens = read_sample(store).tokens
    if config.boilerplate is not None and config.learns_boilerplate:
        values = learn_boilerplate([tokens], config.shingle.n, config.boilerplate)
        config = replace(config, boilerplate_values=values)
        tokens = without_boilerplate(tokens, config)
        log.info(
            "corpus %s: learned %s shingles of boilerplate",
            store.corpus.name,
            len(values),
            extra={"corpus": store.corpus.name, "shingles": len(values)},
        )
    return learn_common([tokens], config) if learns_common(config) else config
