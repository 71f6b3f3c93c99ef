"""Learns the common shingles of a DataFrame from a sample of its texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textsim_db.read.boilerplate import SAMPLE_DOCUMENTS
from textsim_db.settings import CorpusConfig
from textsim_db.sketch.choose_common_shingles import learn_common, learns
from textsim_db.sketch.sketch_texts import tokens_without
from textsim_db.spark.refuse_rows import accept

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

START_CHARACTERS = 4_000
"""The characters of each text of the sample."""


def with_common(documents: DataFrame, config: CorpusConfig) -> CorpusConfig:
    """Return a configuration with the common shingles of rows (key, text, ...), if it learns any.

    Every list of an exact configuration finds the same pairs, so the sample may be any. A good list
    makes buckets small. Without a list, texts with a frequent shingle would be one bucket. With
    passages, the list says which runs are left out.
    """
    if not learns(config):
        return config
    sample = documents.limit(SAMPLE_DOCUMENTS).selectExpr(
        "key", f"substring(text, 1, {START_CHARACTERS}) AS text"
    )
    batches = sample.toArrow().combine_chunks().to_batches(max_chunksize=5_000)
    texts = (accept(batch, is_scoped=False).texts for batch in batches)
    parts = (tokens_without(part, config) for part in texts if part)
    return learn_common(parts, config)
