"""Reads documents into memory, as the host of a join; past a bound their arrays lie in files."""

from __future__ import annotations

import logging
import mmap
import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from textsim_db.base.numba_compiler import Int32Array, Int64Array, inlined_kernel, kernel
from textsim_db.base.run_ahead import ahead, in_batches
from textsim_db.cluster.loaded_documents import LoadedDocuments, rows_of
from textsim_db.compare.pair_values import Rows
from textsim_db.files.records import in_temporary_folder
from textsim_db.results import AddReport
from textsim_db.settings.corpus_settings import CorpusConfig, learns_common
from textsim_db.sketch.ragged import Parts, Ragged, merge_parts, offsets_of
from textsim_db.text.hashing import (
    SPREAD,
    HashTable,
    enter,
    find,
    is_taken,
    number_at,
    table_of,
    with_room,
)
from textsim_db.text.word_cache import WordsInMemory
from textsim_db.write.prepare_batches import Batch, learn_from_first, prepare, without_words

log = logging.getLogger(__name__)

KeyedText = tuple[str, str] | tuple[str, str, str | None]
"""A document as (key, text), or (key, text, scope)."""
Number = TypeVar("Number", bound=np.generic)


def key_of(number: int) -> str:
    """Return a key for the document with a number; the order of the keys is that of the numbers."""
    return f"{number:012d}"


class LoadedTexts:
    """Documents that are being read; of those with equal words only one is stored."""

    def __init__(self, config: CorpusConfig, for_merges: bool, memory: int | None = None) -> None:
        missed = config.many_missed()
        if missed is not None:
            log.warning("%s", missed)
        bound = _MemoryBound(_free_memory() // 2 if memory is None else memory)
        self.config = config
        self._for_merges = for_merges
        self._words = WordsInMemory()
        self._numbers = _GrowingArray(np.int64, bound)
        """By document: its number, which its key has."""
        self._text_of = _GrowingArray(np.int64, bound)
        """By document: the number of its text."""
        self._hashes = table_of(np.empty(1 << 6, np.uint64), 0, SPREAD)
        """The hashes of the texts."""
        self._tokens = _GrowingArray(np.int32, bound)
        self._offsets = _GrowingArray(np.int64, bound)
        self._offsets.extend(np.zeros(1, np.int64))
        self._counts = _GrowingArray(np.int64, bound)
        self._buckets = _GrowingArray(np.int32, bound)
        self._bucket_counts = _GrowingArray(np.int32, bound)
        self._parts = _GrowingArray(np.int64, bound)
        """The part of each text; 0 without scopes."""
        self._guards = _GrowingArray(np.int64, bound)

    def read(
        self, documents: Iterable[KeyedText], progress: Callable[[AddReport], None] | None = None
    ) -> list[tuple[int, str]]:
        """Add documents with keys of key_of(), in their order; call progress after each batch.

        Return the number of each document that cannot be compared, with the reason.
        If the settings make the join exact, the first documents show which shingles are common.
        """
        # Documents without a scope are read faster.
        documents = (each if each[2:] != (None,) else each[:2] for each in documents)
        if learns_common(self.config):
            self.config, documents = learn_from_first(documents, self.config)
        report = AddReport()
        with closing(ahead(in_batches(documents), self._add)) as batches:
            for batch in batches:
                report.added += len(batch.keys)
                report.refused += batch.refused
                if progress is not None:
                    progress(report)
        return [(int(refusal.key), refusal.reason) for refusal in report.refused]

    def _add(self, documents: list[KeyedText]) -> Batch:
        """Add documents; a thread does, while the next ones are read."""
        batch = prepare(documents, self.config)
        word_ids = self._words.ids(batch.sketches.tokens)
        if not word_ids.all():
            batch = without_words(batch, np.flatnonzero(word_ids == 0), self.config)
            word_ids = self._words.ids(batch.sketches.tokens)
        sketches, first = batch.sketches, len(self._counts)
        rows = rows_of(sketches.tokens, word_ids, sketches.shingle_counts, self.config.shingle)
        parts = np.zeros(len(batch.keys), np.int64) if sketches.parts is None else sketches.parts
        text_of = self._fold(rows, parts)
        distinct, places = np.unique(text_of, return_index=True)
        new = places[distinct >= first]
        self._numbers.extend(np.array(batch.keys, np.int64))
        self._text_of.extend(text_of)
        buckets = sketches.buckets.take(new)
        self._buckets.extend(buckets.values)
        self._bucket_counts.extend(buckets.sizes)
        if self._for_merges and sketches.guards is not None:
            self._guards.extend(sketches.guards[new])
        return batch

    def _fold(self, rows: Rows, parts: Int64Array) -> Int64Array:
        """Store the rows of new texts, and return the number of the text of each document."""
        first, start = len(self._counts), int(self._offsets.values[-1])
        self._tokens.extend(rows.tokens)
        for array, values in (
            (self._offsets, start + rows.offsets[1:]),
            (self._counts, rows.shingle_counts),
            (self._parts, parts),
        ):
            array.extend(values)
        self._hashes = with_room(self._hashes, first, len(parts))
        texts = _StoredTexts(
            self._tokens.values, self._offsets.values, self._counts.values, self._parts.values
        )
        text_of = _fold(texts, self._hashes, first)
        count = max(first, int(text_of.max(initial=-1)) + 1)
        self._tokens.resize(int(self._offsets.values[count]))
        self._offsets.resize(count + 1)
        self._counts.resize(count)
        self._parts.resize(count)
        return text_of

    def numbers(self) -> Int64Array:
        """Return the number of each document, which its key has: (documents,)."""
        return self._numbers.values

    def count_without_words(self, documents: int) -> int:
        """Return how many of the first documents have no words."""
        return int(np.count_nonzero(self._counts.values[self._text_of.values[:documents]] == 0))

    def parts(self) -> Parts:
        """Return the part of each document; None without scopes."""
        return self._parts.values[self._text_of.values] if self.config.scoped else None

    def text_numbers(self, numbers: Int64Array) -> Int64Array:
        """Return the number of the text of each of these documents; equal words have one number."""
        return self._text_of.values[np.searchsorted(self.numbers(), numbers)]

    def forms(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return the normal forms of documents by their numbers, which are sorted."""
        texts = self.text_numbers(np.array(numbers, np.int64)).tolist()
        bounds = self._offsets.values
        rows = [self._tokens.values[bounds[text] : bounds[text + 1]] for text in texts]
        if self.config.shingle.unit == "char":
            forms = [row.astype("<u4").tobytes().decode("utf-32-le") for row in rows]
        else:
            words = self._words.texts(np.unique(np.concatenate([np.empty(0, np.int32), *rows])))
            forms = [" ".join(map(words.__getitem__, row.tolist())) for row in rows]
        return dict(zip(numbers, forms, strict=True))

    def host(self) -> LoadedDocuments:
        """Return all documents, numbered in the order in which they were added."""
        counts, n = self._counts.values, self.config.shingle.n
        parts = self._parts.values if self.config.scoped else None
        guards = self._guards.values if self._for_merges and self.config.guards else None
        return LoadedDocuments(
            self._text_of.values,
            Rows(self._tokens.values, self._offsets.values, counts, n),
            Ragged(self._buckets.values, offsets_of(self._bucket_counts.values)),
            merge_parts(parts, guards),
            self.config,
        )


class _StoredTexts(NamedTuple):
    """The rows of stored texts, and after them those of documents that are being added."""

    tokens: Int32Array
    offsets: Int64Array
    """The bounds of each text: (texts + 1,)."""
    counts: Int64Array
    """The shingles of each text."""
    parts: Int64Array
    """The part of each text."""


@kernel
def _fold(texts: _StoredTexts, table: HashTable, first: int) -> Int64Array:
    """Return the number of the text of each document from first on; move new texts together.

    Texts without shingles match nothing, so each has a number of its own.
    """
    text_of = np.empty(len(texts.counts) - first, np.int64)
    count, start = first, texts.offsets[first]
    for document in range(first, len(texts.counts)):
        end = texts.offsets[document + 1]
        part, shingles = texts.parts[document], texts.counts[document]
        number = -1
        if shingles:
            text_hash = _hash(texts.tokens, start, end, np.uint64(part), np.uint64(table.spread))
            slot = find(table, text_hash)
            if not is_taken(table, slot):
                enter(table, slot, count)
                table.hashes[count] = text_hash
            elif _is_equal(texts, number_at(table, slot), start, end, part):
                number = number_at(table, slot)
        if number < 0:
            number = count
            _move(texts, count, start, end, part, shingles)
            count += 1
        text_of[document - first] = number
        start = end
    return text_of


@inlined_kernel
def _hash(
    tokens: Int32Array, start: int, end: int, part: np.uint64, spread: np.uint64
) -> np.uint64:
    value = part
    for i in range(start, end):
        value = (value ^ np.uint64(np.uint32(tokens[i]))) * spread
        value ^= value >> np.uint64(29)
    return value


@inlined_kernel
def _is_equal(texts: _StoredTexts, text: int, start: int, end: int, part: int) -> bool:
    begin = texts.offsets[text]
    if texts.offsets[text + 1] - begin != end - start or texts.parts[text] != part:
        return False
    for i in range(end - start):
        if texts.tokens[begin + i] != texts.tokens[start + i]:
            return False
    return True


@inlined_kernel
def _move(texts: _StoredTexts, text: int, start: int, end: int, part: int, shingles: int) -> None:
    """Write the row of a text, which lies at its place or after it."""
    begin = texts.offsets[text]
    for i in range(end - start):
        texts.tokens[begin + i] = texts.tokens[start + i]
    texts.offsets[text + 1] = begin + end - start
    texts.parts[text], texts.counts[text] = part, shingles


_FIRST_BYTES = 1 << 16


class _MemoryBound:
    """The bytes that arrays may take in memory together."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.used = 0


class _GrowingArray(Generic[Number]):
    """An array that grows at its end. Its file has no name, so it vanishes with the process."""

    def __init__(self, kind: type[Number], bound: _MemoryBound) -> None:
        self._kind = np.dtype(kind)
        self._bound = bound
        self._file: Any = None
        self._buffer: npt.NDArray[Number] = np.empty(0, self._kind)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> npt.NDArray[Number]:
        """The array as it is; it must not be used after the next growth."""
        return self._buffer[: self._size]

    def extend(self, values: npt.NDArray[Any]) -> None:
        self.resize(self._size + len(values))
        self._buffer[self._size - len(values) : self._size] = values

    def resize(self, size: int) -> None:
        """Make the array longer, by values that are written later, or shorter."""
        if size > len(self._buffer):
            self._make_room(size)
        self._size = size

    def _make_room(self, size: int) -> None:
        """Move to an array that is half as large again."""
        length = max(size, len(self._buffer) * 3 // 2, _FIRST_BYTES // self._kind.itemsize)
        more = (length - len(self._buffer)) * self._kind.itemsize
        if self._file is None and self._bound.used + more <= self._bound.most:
            # A mapping of its own goes back to the system when the array has moved.
            size = length * self._kind.itemsize
            mapped = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            buffer = np.frombuffer(mapped, self._kind)
            buffer[: self._size] = self.values
            self._bound.used += more
        else:
            buffer = self._in_file(length)
        self._buffer = buffer

    def _in_file(self, length: int) -> npt.NDArray[Number]:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="textsim-")  # noqa: SIM115
            weakref.finalize(self, self._file.close)
            with in_temporary_folder():
                self._file.write(self.values.view(np.uint8).data)
                self._file.flush()
            self._bound.used -= self._buffer.nbytes
        size = length * self._kind.itemsize
        with in_temporary_folder():
            self._file.truncate(size)
            if hasattr(os, "posix_fallocate"):  # macOS has none
                # A full disk is an error here. Later it would be a signal that ends the process.
                os.posix_fallocate(self._file.fileno(), 0, size)
        mapped = mmap.mmap(self._file.fileno(), size)
        return np.frombuffer(mapped, self._kind)


def _free_memory() -> int:
    """Return the bytes of memory that are free, or that files in the cache give back."""
    free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, StopIteration), open("/proc/meminfo") as file:
        free = 1024 * int(next(line for line in file if "MemAvailable" in line).split()[1])
    # A container may have less; without a limit the file says "max".
    with suppress(OSError, ValueError), open("/sys/fs/cgroup/memory.max") as file:
        free = min(free, int(file.read()))
    return free
