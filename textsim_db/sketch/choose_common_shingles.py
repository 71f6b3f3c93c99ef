"""Learns from a sample of documents which shingles are common, and their classes; pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import ceil

import numpy as np

from textsim_db.base.numba_compiler import Int64Array
from textsim_db.settings.corpus_settings import CorpusConfig
from textsim_db.sketch.exact_prefix import CommonValues, common_values
from textsim_db.sketch.fingerprints import LEFT_OUT, distinct_passage_values
from textsim_db.sketch.ragged import begins_run
from textsim_db.text.shingles import find_shingles
from textsim_db.text.utf8 import Tokens

SAMPLE_DOCUMENTS = 50_000
"""The documents of a sample. More documents show rarer shingles, and take memory."""
FEWEST_DOCUMENTS = 100
"""A sample of fewer documents does not show which shingles are common."""
COMMON_SHARE = 1 / 20_000
"""A shingle is common if this share of the documents of a sample has it, and enough documents."""
LEAST_OF_SHINGLES, LEAST_OF_PASSAGES = 2, 16
"""The documents of a sample that have a common shingle. Passages are longer, so fewer are common."""
_MOST_CLASS = 15
"""The highest class: textsim._choose() in SQL has four bits for it."""


def learn_common(samples: Iterable[Tokens], config: CorpusConfig) -> CorpusConfig:
    """Return the configuration with the common shingles of a sample of documents, in parts.

    An exact corpus learns the list of its shingles, and a corpus with passages the list of its
    passages. If there are fewer than FEWEST_DOCUMENTS documents, it learns none. In a corpus with
    parts no class leaves shingles out: the documents of one part would hide passages of another.
    """
    documents = 0
    shingles, passages = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for tokens in samples:
        documents += tokens.documents
        if config.is_exact:
            shingles.append(find_shingles(tokens, config.shingle).hashes.view(np.int64))
        if config.passages is not None:
            passages.append(distinct_passage_values(tokens, config))
    config = replace(config, common=None, common_of_passages=None)
    if documents < FEWEST_DOCUMENTS:
        return config
    share = ceil(documents * COMMON_SHARE)
    finds_all = config.common_passages or config.scoped
    most_class = LEFT_OUT - 1 if finds_all else _MOST_CLASS
    return replace(
        config,
        common=_values_with(np.concatenate(shingles), max(LEAST_OF_SHINGLES, share)),
        common_of_passages=_values_with(
            np.concatenate(passages), max(LEAST_OF_PASSAGES, share), most_class
        ),
    )


def _values_with(
    hashes: Int64Array, least: int, most_class: int = _MOST_CLASS
) -> CommonValues | None:
    """Return the values that occur `least` times or more, with their classes; sorts the hashes."""
    hashes.sort()
    # A value that occurs n times is here n - least + 1 times.
    repeated = hashes[: 1 - least][hashes[: 1 - least] == hashes[least - 1 :]]
    if not len(repeated):
        return None
    starts = np.flatnonzero(begins_run(repeated))
    counts = np.diff(starts, append=len(repeated)) + least - 1
    classes = np.minimum(np.log2(counts), most_class)
    return common_values(repeated[starts], classes.astype(np.int16))
