"""Signatures and common shingles as they are stored, read back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from textsim_db.db.binary_format import Array, load_int8_array
from textsim_db.db.binary_rows import load_int2_arrays, load_int4_arrays
from textsim_db.errors import DatabaseError
from textsim_db.settings import CorpusConfig
from textsim_db.sketch.common_values import CommonValues, common_values
from textsim_db.sketch.ragged import Ragged, Signatures


def load_signatures(
    parts: Sequence[bytes], names: Sequence[object], config: CorpusConfig
) -> Signatures:
    """Read the signatures of documents as array_send gives them.

    names: the names of the documents, for the error. Raises DatabaseError for a signature of a length
    that the configuration does not give.
    """
    if config.is_exact:
        return Ragged(*load_int4_arrays(parts))
    signatures = Ragged(*load_int2_arrays(parts))
    sizes = signatures.sizes
    damaged = np.flatnonzero((sizes != 0) & (sizes != config.num_hashes))
    if len(damaged):
        raise DatabaseError(
            f'the signature of document "{names[damaged[0]]}" has {sizes[damaged[0]]} values; '
            f"expected {config.num_hashes}: run textsim check"
        )
    return signatures


def load_common(values: bytes, classes: bytes) -> CommonValues:
    """Read the common shingles of a corpus from two arrays, as array_send gives them."""
    return common_values(load_int8_array(values), load_int2_arrays([classes])[0])


def common_parameters(common: CommonValues) -> tuple[Array, Array]:
    """Return the common shingles of a corpus as parameters of a statement: values and classes."""
    return Array(common.values), Array(common.classes)
