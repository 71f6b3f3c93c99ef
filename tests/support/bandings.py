"""The banding of a corpus that is not exact."""

from __future__ import annotations

from textsim_db.settings import Bands, CorpusConfig


def banding_of(config: CorpusConfig) -> Bands:
    banding = config.banding
    assert banding is not None, "the corpus is exact"
    return banding
