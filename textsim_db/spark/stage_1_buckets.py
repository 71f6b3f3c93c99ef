"""First stage: documents in, their buckets out, packed into messages to the partitions of buckets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from textsim_db.base.numba_compiler import HashArray, Int64Array
from textsim_db.errors import DocumentError
from textsim_db.results import Refusal
from textsim_db.settings.choose_bands import Bands
from textsim_db.settings.corpus_settings import CorpusConfig, learns_common
from textsim_db.sketch.exact_prefix import most_of_small
from textsim_db.sketch.learned_shingles import SAMPLE_DOCUMENTS, learn_common
from textsim_db.sketch.sketch_texts import Sketches, sketch, tokens_without
from textsim_db.spark.columns import Accepted, accept
from textsim_db.spark.packed_rows import (
    Entries,
    Message,
    joined,
    pack_entries,
    pack_numbers,
    to_arrow,
)
from textsim_db.text.hashing import parts_of_scopes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


ENTRIES_AT_ONCE = 1_000_000
"""The buckets that a task packs at once. More make larger messages, and take more memory."""
MOST_NAMED = 1_000
"""The refused rows that each task names; all are counted."""
BUCKET_BITS = 48
SMALL = np.uint64(1)
"""The lowest bit of a bucket that only small documents of an exact corpus have."""


def send_buckets(
    batches: Iterator[pa.RecordBatch], config: CorpusConfig, partitions: int
) -> Iterator[pa.RecordBatch]:
    """Yield messages with the buckets of documents, which come as rows (key, text, scope, number)."""
    outbox = Outbox(partitions)
    for batch in batches:
        accepted = accept(batch, config.scoped)
        numbers = batch.column(3).to_numpy()[accepted.places]
        outbox.refuse(accepted.refused)
        for sketches, chosen in sketch_accepted(accepted, config, outbox):
            outbox.add(entries_of(sketches, numbers[chosen], config), numbers[chosen])
            if outbox.count > ENTRIES_AT_ONCE:
                yield outbox.flush()
    yield outbox.flush()


def sketch_accepted(
    accepted: Accepted, config: CorpusConfig, outbox: Outbox
) -> Iterator[tuple[Sketches, Int64Array]]:
    """Yield the sketches of documents, with their places; refuse texts whose normal form is too long."""
    parts = None if accepted.scopes is None else parts_of_scopes(accepted.scopes)
    try:
        yield sketch(accepted.texts, config, parts=parts), np.arange(len(accepted.texts))
    except DocumentError:
        for i, text in enumerate(accepted.texts):
            try:
                own = None if parts is None else parts[i : i + 1]
                yield sketch([text], config, parts=own), np.array([i])
            except DocumentError as error:
                outbox.refuse([Refusal(accepted.keys[i].decode(), str(error))])


@dataclass
class Outbox:
    """The entries of a task, the numbers of its documents, and its refused rows, until they are sent."""

    partitions: int
    count: int = 0
    entries: list[Entries] = field(default_factory=list)
    numbers: list[Int64Array] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    refused_count: int = 0

    def add(self, entries: Entries, numbers: Int64Array) -> None:
        self.entries.append(entries)
        self.numbers.append(numbers)
        self.count += len(entries.buckets) + len(numbers)

    def refuse(self, refused: list[Refusal]) -> None:
        """Take rows that cannot be compared."""
        self.refused_count += len(refused)
        self.refused += refused[: MOST_NAMED - len(self.refused)]

    def flush(self) -> pa.RecordBatch:
        """Return all messages, and forget them."""
        messages = [*self._entry_messages(), *self._number_messages()]
        if self.refused_count:
            data = json.dumps([self.refused_count, self.refused]).encode()
            messages.append(Message(0, "refused", data))
        for values in (self.entries, self.numbers, self.refused):
            values.clear()
        self.count = self.refused_count = 0
        return to_arrow(messages)

    def _entry_messages(self) -> Iterator[Message]:
        entries = joined(self.entries)
        for partition, chosen in self._slices(entries.buckets, BUCKET_BITS):
            data = pack_entries(Entries(entries.buckets[chosen], entries.numbers[chosen]))
            yield Message(partition, "entries", data)

    def _number_messages(self) -> Iterator[Message]:
        numbers = np.concatenate([np.empty(0, np.int64), *self.numbers]).view(np.uint64)
        numbers.sort()
        for partition, chosen in self._slices(numbers, 64):
            yield Message(partition, "numbers", pack_numbers(numbers[chosen].view(np.int64)))

    def _slices(self, values: HashArray, bits: int) -> Iterator[tuple[int, slice]]:
        """Yield each partition that has some of the values, which are sorted and have these bits."""
        # The integers of Python do not overflow.
        starts = [(partition << bits) // self.partitions for partition in range(self.partitions)]
        cuts = [*np.searchsorted(values, np.array(starts, np.uint64)).tolist(), len(values)]
        for partition, (start, end) in enumerate(pairwise(cuts)):
            if start < end:
                yield partition, slice(start, end)


def entries_of(sketches: Sketches, numbers: Int64Array, config: CorpusConfig) -> Entries:
    """Return the buckets of documents as entries; numbers: the number of each document."""
    # Buckets are mixed with the parts. So equal buckets of one part stay equal, and each match has its
    # edges. Documents of two parts meet only by chance. An edge claims nothing, and the third stage
    # compares the parts.
    buckets = sketches.buckets
    wide = buckets.values.astype(np.uint32).astype(np.uint64) << np.uint64(16)
    owners = numbers[buckets.owners()]
    if config.banding is not None:
        return Entries(wide | _check_bits(sketches, config.banding, config.num_hashes), owners)
    is_small = sketches.shingle_counts < most_of_small(config.threshold)
    of_small = np.repeat(is_small, buckets.sizes)
    return Entries(
        np.concatenate((wide, wide[of_small] | SMALL)),
        np.concatenate((owners, owners[of_small])),
    )


def _check_bits(sketches: Sketches, banding: Bands, num_hashes: int) -> HashArray:
    """Return 16 more bits for each bucket, a hash of the values of its band.

    Buckets of 32 bits collide. In 100 million documents each document would have seven accidental
    candidates, and all documents would be one component.
    """
    bands, rows = banding
    matrix = sketches.signatures.values.reshape(-1, num_hashes)[:, : bands * rows]
    values = matrix.astype(np.uint64).reshape(-1, bands, rows)
    factors = np.random.default_rng(0).integers(0, 2**64, rows, np.uint64) | np.uint64(1)
    hashed: HashArray = (values * factors).sum(axis=2, dtype=np.uint64) >> np.uint64(48)
    return hashed.ravel()


START_CHARACTERS = 4_000
"""The characters of each text of the sample."""


def sample_of(documents: DataFrame, *others: str) -> DataFrame:
    """Return the key, the start of the text, and other columns of some documents."""
    start = f"substring(text, 1, {START_CHARACTERS}) AS text"
    return documents.limit(SAMPLE_DOCUMENTS).selectExpr("key", start, *others)


def with_common(documents: DataFrame, config: CorpusConfig) -> CorpusConfig:
    """Return a configuration with the common shingles of rows (key, text, ...), if it learns any.

    Every list of an exact configuration finds the same pairs, so the sample may be any. A good list
    makes buckets small. Without a list, texts with a frequent shingle would be one bucket. With
    passages, the list says which runs are left out.
    """
    if not learns_common(config):
        return config
    sample = sample_of(documents).toArrow()
    batches = sample.combine_chunks().to_batches(max_chunksize=5_000)
    texts = (accept(batch, is_scoped=False).texts for batch in batches)
    tokens = (tokens_without(batch, config) for batch in texts if batch)
    return learn_common(tokens, config)
