"""From UTF-8 bytes to words: the kernels behind textsim_db.text."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from textsim_db.text.compiler import kernel
from textsim_db.text.hashing import PADDING, hash_span
from textsim_db.text.unicode_tables import (
    JOINING,
    MARK,
    MAX_MARKS,
    SEPARATOR,
    SPACELESS,
    UNASSIGNED,
    UNSTABLE,
    WORD,
)

SPACE = ord(" ")

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]
Spans = npt.NDArray[np.int32]  # places within a batch, which is below 2 GB


@kernel
def _decode(data: Bytes, at: int) -> tuple[np.int64, int]:
    """Return the code point that starts at a byte of valid UTF-8, and where the next one starts."""
    first = np.int64(data[at])
    if first < 0x80:
        return first, at + 1
    second = np.int64(data[at + 1]) & 0x3F
    if first < 0xE0:
        return (first & 0x1F) << 6 | second, at + 2
    third = np.int64(data[at + 2]) & 0x3F
    if first < 0xF0:
        return (first & 0x0F) << 12 | second << 6 | third, at + 3
    fourth = np.int64(data[at + 3]) & 0x3F
    return (first & 0x07) << 18 | second << 12 | third << 6 | fourth, at + 4


@kernel
def _encode(out: Bytes, at: int, point: int) -> int:
    """Write a code point as UTF-8 and return where the next one goes."""
    if point < 0x80:
        out[at] = point
        return at + 1
    if point < 0x800:
        out[at] = 0xC0 | point >> 6
        out[at + 1] = 0x80 | point & 0x3F
        return at + 2
    if point < 0x10000:
        out[at] = 0xE0 | point >> 12
        out[at + 1] = 0x80 | point >> 6 & 0x3F
        out[at + 2] = 0x80 | point & 0x3F
        return at + 3
    out[at] = 0xF0 | point >> 18
    out[at + 1] = 0x80 | point >> 12 & 0x3F
    out[at + 2] = 0x80 | point >> 6 & 0x3F
    out[at + 3] = 0x80 | point & 0x3F
    return at + 4


@kernel
def find_unstable(
    data: Bytes, offsets: Offsets, order: npt.NDArray[np.uint8], kind: npt.NDArray[np.uint8]
) -> npt.NDArray[np.bool_]:
    """Mark the documents that NFKC may change, and those with too many marks in a run.

    This is the quick check of Unicode Standard Annex 15, section 9: a text is normalised when each
    of its characters is stable and combining classes never fall within a run of marks.
    """
    unstable = np.zeros(len(offsets) - 1, np.bool_)
    for i in range(len(unstable)):
        at, end = offsets[i], offsets[i + 1]
        any_high = np.uint8(0)
        for k in range(at, end):
            any_high |= data[k]
        if any_high < 0x80:
            continue
        last, marks = 0, 0
        while at < end:
            point, at = _decode(data, at)
            if point < 0x80:
                last, marks = 0, 0
                continue
            now = 0 if order[point] == UNASSIGNED else order[point]
            marks = marks + 1 if kind[point] == MARK else 0
            if now >= UNSTABLE or (now != 0 and now < last) or marks > MAX_MARKS:
                unstable[i] = True
                break
            last = now
    return unstable


@kernel
def prepare_pieces(
    data: Bytes, order: npt.NDArray[np.uint8], kind: npt.NDArray[np.uint8], piece_bytes: int
) -> tuple[Bytes, Offsets]:
    """Make one text fit for NFKC, and cut it into pieces that NFKC treats independently.

    Code points that are not assigned become spaces; then marks past the 30th of a run are dropped.
    Returns the text and the offsets of its pieces (pieces + 1), each of at least piece_bytes except
    the last. A piece ends before a character that
    NFKC cannot join to what precedes it. That is one that never joins, one after a mark, or the third
    of several Hangul vowels and finals: only the first two of them can belong to a syllable.
    """
    out = np.empty(len(data), np.uint8)
    cuts = np.zeros(len(data) // piece_bytes + 2, np.int64)
    pieces, position, at = 0, 0, 0
    marks, joining = 0, 0
    while at < len(data):
        start = at
        point, at = _decode(data, at)
        if kind[point] == MARK:
            marks, joining = marks + 1, 0
            if marks > MAX_MARKS:
                continue
        else:
            joins = order[point] == JOINING and marks == 0 and joining < 2
            if not joins and position - cuts[pieces] >= piece_bytes:
                pieces += 1
                cuts[pieces] = position
            marks, joining = 0, joining + 1 if order[point] == JOINING else 0
        if order[point] == UNASSIGNED:
            out[position] = SPACE
            position += 1
        else:
            for k in range(start, at):
                out[position] = data[k]
                position += 1
    cuts[pieces + 1] = position
    return out[:position], cuts[: pieces + 2]


@kernel
def split_words(
    data: Bytes, offsets: Offsets, kind: npt.NDArray[np.uint8], lower: npt.NDArray[np.int32]
) -> tuple[Bytes, Offsets, Spans, Spans, Offsets]:
    """Fold case and split normalised UTF-8 into words.

    Returns the normal forms one after another (uint8), where each document's ends begin
    (documents + 1), the first and the past-the-end byte of each word, and the number of the first
    word of each document (documents + 1).
    """
    # Two bytes become three and a space at most; a spaceless character (three or more) gains
    # one space.
    out = np.empty(2 * len(data) + PADDING, np.uint8)
    normal_offsets = np.zeros(len(offsets), np.int64)
    word_offsets = np.zeros(len(offsets), np.int64)
    capacity = (len(data) >> 1) + len(offsets) + 1
    starts = np.empty(capacity, np.int32)
    ends = np.empty(capacity, np.int32)
    ascii_fold = np.zeros(256, np.uint8)
    for byte in range(0x80):
        if kind[byte] == WORD:
            ascii_fold[byte] = lower[byte]
    position = 0
    count = 0
    for i in range(len(offsets) - 1):
        at, end = offsets[i], offsets[i + 1]
        first = position
        inside = SEPARATOR
        while at < end:
            if inside == WORD:
                # Most bytes of most texts: ASCII letters and digits inside a word.
                folded = ascii_fold[data[at]]
                while folded:
                    out[position] = folded
                    position += 1
                    at += 1
                    if at == end:
                        break
                    folded = ascii_fold[data[at]]
                if at == end:
                    break
            point, at = _decode(data, at)
            now = kind[point]
            if now == SEPARATOR:
                inside = SEPARATOR
                continue
            # A word begins after a separator, at each spaceless character, and where a run of
            # other letters follows a spaceless character.
            if inside == SEPARATOR or now == SPACELESS or (inside == SPACELESS and now != MARK):
                if position > first:
                    ends[count - 1] = position
                    out[position] = 0x20
                    position += 1
                starts[count] = position
                count += 1
                inside = now
            position = _encode(out, position, lower[point])
        if position > first:
            ends[count - 1] = position
        normal_offsets[i + 1] = position
        word_offsets[i + 1] = count
    return out[:position], normal_offsets, starts[:count], ends[:count], word_offsets


@kernel
def _same_bytes(data: Bytes, a: int, a_end: int, b: int, b_end: int) -> bool:
    if a_end - a != b_end - b:
        return False
    for i in range(a_end - a):
        if data[a + i] != data[b + i]:
            return False
    return True


@kernel
def word_shingles(
    starts: Spans, ends: Spans, word_offsets: Offsets, n: int
) -> tuple[Spans, Spans, Offsets]:
    """Return the first byte, the past-the-end byte and the document offsets of all word n-grams."""
    count = 0
    for i in range(len(word_offsets) - 1):
        size = word_offsets[i + 1] - word_offsets[i]
        count += max(size - n + 1, 1) if size else 0
    firsts = np.empty(count, np.int32)
    lasts = np.empty(count, np.int32)
    offsets = np.zeros(len(word_offsets), np.int64)
    k = 0
    for i in range(len(word_offsets) - 1):
        first, last = word_offsets[i], word_offsets[i + 1]
        if last > first:
            width = min(n, last - first)
            for j in range(first, last - width + 1):
                firsts[k] = starts[j]
                lasts[k] = ends[j + width - 1]
                k += 1
        offsets[i + 1] = k
    return firsts, lasts, offsets


@kernel
def char_shingles(normal: Bytes, normal_offsets: Offsets, n: int) -> tuple[Spans, Spans, Offsets]:
    """Return the first byte, the past-the-end byte and the document offsets of all n-grams."""
    firsts = np.empty(len(normal), np.int32)
    lasts = np.empty(len(normal), np.int32)
    offsets = np.zeros(len(normal_offsets), np.int64)
    k = 0
    for i in range(len(normal_offsets) - 1):
        start, end = normal_offsets[i], normal_offsets[i + 1]
        ahead = start
        taken = 0
        while ahead < end and taken < n:
            _, ahead = _decode(normal, ahead)
            taken += 1
        if taken:
            at = start
            firsts[k] = at
            lasts[k] = ahead
            k += 1
            while ahead < end:
                _, at = _decode(normal, at)
                _, ahead = _decode(normal, ahead)
                firsts[k] = at
                lasts[k] = ahead
                k += 1
        offsets[i + 1] = k
    return firsts[:k], lasts[:k], offsets


@kernel
def distinct_shingles(
    normal: Bytes, firsts: Spans, lasts: Spans, offsets: Offsets, spread: np.uint64
) -> tuple[npt.NDArray[np.uint64], Spans, Offsets]:
    """Keep the first of equal shingles in each document.

    Returns the 64-bit hashes of the distinct shingles in order of first appearance, the number of
    each among the shingles given, and the document offsets (documents + 1). Equality is decided on
    the bytes; the hash only finds the place to look. spread: an odd number that the author of a text
    cannot know. Without it shingles can be chosen whose places are the same, in quadratic time.
    """
    widest = 0
    for i in range(len(offsets) - 1):
        widest = max(widest, offsets[i + 1] - offsets[i])
    size = 16
    while size < 2 * widest:
        size *= 2
    table = np.full(size, -1, np.int32)
    hashes = np.empty(len(firsts), np.uint64)
    chosen = np.empty(len(firsts), np.int32)
    distinct = np.zeros(len(offsets), np.int64)
    k = 0
    for i in range(len(offsets) - 1):
        size, shift = 16, np.uint64(60)
        while size < 2 * (offsets[i + 1] - offsets[i]):
            size *= 2
            shift -= np.uint64(1)
        mask = np.uint64(size - 1)
        base = k
        for j in range(offsets[i], offsets[i + 1]):
            value = hash_span(normal, firsts[j], lasts[j])
            slot = (value * spread) >> shift
            while True:
                other = table[slot]
                if other < 0:
                    table[slot] = k
                    hashes[k] = value
                    chosen[k] = j
                    k += 1
                    break
                if hashes[other] == value and _same_bytes(
                    normal, firsts[j], lasts[j], firsts[chosen[other]], lasts[chosen[other]]
                ):
                    break
                slot = (slot + np.uint64(1)) & mask
        for j in range(base, k):
            slot = (hashes[j] * spread) >> shift
            while table[slot] >= 0:
                table[slot] = -1
                slot = (slot + np.uint64(1)) & mask
        distinct[i + 1] = k
    return hashes[:k], chosen[:k], distinct


@kernel
def find_words(
    data: Bytes,
    starts: Spans,
    ends: Spans,
    hashes: npt.NDArray[np.int64],
    wanted: Bytes,
    wanted_offsets: Offsets,
    wanted_hashes: npt.NDArray[np.int64],
) -> npt.NDArray[np.bool_]:
    """Say which words are among some that are wanted, sorted by their hashes."""
    found = np.zeros(len(starts), np.bool_)
    for i in range(len(starts)):
        length = ends[i] - starts[i]
        place = np.searchsorted(wanted_hashes, hashes[i])
        while place < len(wanted_hashes) and wanted_hashes[place] == hashes[i]:
            at = wanted_offsets[place]
            if wanted_offsets[place + 1] - at == length:
                same = True
                for k in range(length):
                    if data[starts[i] + k] != wanted[at + k]:
                        same = False
                        break
                if same:
                    found[i] = True
                    break
            place += 1
    return found


@kernel
def leave_out(
    normal: Bytes,
    starts: Spans,
    ends: Spans,
    word_offsets: Offsets,
    left_out: npt.NDArray[np.bool_],
) -> tuple[Bytes, Offsets, Spans, Spans, Offsets]:
    """Return normal forms without some of their words, as split_words returns them."""
    out = np.empty(len(normal) + PADDING, np.uint8)
    documents = len(word_offsets) - 1
    normal_offsets = np.zeros(documents + 1, np.int64)
    new_offsets = np.zeros(documents + 1, np.int64)
    new_starts = np.empty(len(starts), np.int32)
    new_ends = np.empty(len(starts), np.int32)
    position, count = 0, 0
    for document in range(documents):
        first = position
        for i in range(word_offsets[document], word_offsets[document + 1]):
            if left_out[i]:
                continue
            if position > first:
                out[position] = SPACE
                position += 1
            length = ends[i] - starts[i]
            new_starts[count] = position
            for k in range(length):
                out[position + k] = normal[starts[i] + k]
            position += length
            new_ends[count] = position
            count += 1
        normal_offsets[document + 1] = position
        new_offsets[document + 1] = count
    return out[:position], normal_offsets, new_starts[:count], new_ends[:count], new_offsets
