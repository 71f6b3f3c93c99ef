"""Learns the common shingles of an exact corpus: from its first load, or from what it holds.

The list is frozen with the corpus, because the keys of all documents depend on it. So an empty corpus
that learns a list is rebuilt, which gives it another id. Other sessions notice the id, and read the
list.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from textsim_db.db.binary_rows import load_int4_arrays
from textsim_db.db.engine import autocommit
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.read.stored_documents import normal_forms
from textsim_db.settings import CorpusConfig
from textsim_db.sketch.common_shingles import FEWEST_DOCUMENTS, learn_common
from textsim_db.text.run_ahead import cut
from textsim_db.text.tokens import tokens_of
from textsim_db.write import statements
from textsim_db.write.prepare_batches import in_batches, length_of, words_of
from textsim_db.write.rebuild import rebuild

log = logging.getLogger(__name__)

SAMPLE_DOCUMENTS = 50_000
"""The documents from which a corpus learns. More documents show rarer shingles, and take memory."""
SAMPLE_BYTES = 256 * 1024 * 1024
"""The size of the stored documents from which a rebuild learns, unless a single page has more."""


def learn_from_load(
    store: Store, documents: Iterator[Any]
) -> tuple[StoredCorpus | None, Iterator[Any]]:
    """Let an empty exact corpus learn from the first documents of a load.

    Returns the corpus that takes the place of this one, or None, and all the documents. Only the owner
    of a corpus can rebuild it, so a corpus learns nothing from the first load of another role. A tracked
    corpus learns nothing either.
    """
    corpus = store.corpus
    if not corpus.config.is_exact or corpus.config.common or not _can_learn(store):
        return None, documents
    pieces = cut(documents, SAMPLE_DOCUMENTS, _weight)
    head = next(pieces, [])
    # The pieces end with the error that the documents raised, if they did.
    documents = chain(head, documents, chain.from_iterable(pieces))
    if len(head) < FEWEST_DOCUMENTS:
        return None, documents
    samples = (words_of(batch, corpus.config) for batch in in_batches(head))
    common = learn_common(samples, corpus.config.shingle)
    if not len(common.values):
        return None, documents
    log.info(
        "corpus %s: learned %s common shingles",
        *(corpus.name, len(common.values)),
        extra={"corpus": corpus.name, "shingles": len(common.values)},
    )
    return rebuild(store, replace(corpus.config, common=common)), documents


def learn_from_corpus(store: Store, config: CorpusConfig) -> CorpusConfig:
    """Return a configuration for a rebuild, if it is exact with the common shingles of the corpus."""
    if not config.is_exact:
        return replace(config, common=None)
    with autocommit(store.engine) as connection:
        cursor = connection.cursor(binary=True)
        ((count, size),) = cursor.execute(
            store.corpus.statement(statements.SIZE_OF_CORPUS)
        ).fetchall()
        share = min(1.0, SAMPLE_DOCUMENTS / max(count, 1), SAMPLE_BYTES / max(size, 1))
        statement = store.corpus.statement(statements.SAMPLE_OF_WORDS)
        rows = cursor.execute(statement, [100 * share]).fetchall()
    word_ids, offsets = load_int4_arrays([row[0] or b"" for row in rows])
    composed = normal_forms(word_ids, offsets, store.dictionary)
    forms = [form if row[1] is None else row[1] for row, form in zip(rows, composed, strict=True)]
    tokens = tokens_of([form.encode() for form in forms])
    common = learn_common([tokens], config.shingle)
    return replace(config, common=common if len(common.values) else None)


def _weight(document: Any) -> int:
    """Return the weight of a document in a sample, which may have eight times the text of a batch."""
    return length_of(document) // 8


def _can_learn(store: Store) -> bool:
    with autocommit(store.engine) as connection:
        row = connection.execute(store.corpus.statement(statements.IS_REPLACEABLE)).fetchone()
        return row == (True,)
