"""The banding of a corpus that is not exact."""

from __future__ import annotations

from textsim_db.choose_bands import Bands
from textsim_db.settings import CorpusConfig


def banding_of(config: CorpusConfig) -> Bands:
    banding = config.banding
    assert banding is not None, "the corpus is exact"
    return banding
