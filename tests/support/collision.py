"""Two different words with the same hashtextextended, and the search that found them.

lookup3 takes 12 bytes at a time: it adds them to its state and mixes the state. Take two words of 24
letters. The second halves can cancel the difference that the first halves made in the state. That
works if the three 32-bit differences are differences of letters and digits, as in one pair of some
8,000. Run this file to search again.
"""

from __future__ import annotations

import itertools
import random
import struct

FIRST = "3supc5uhsrmmdzzyk099knq9"
SECOND = "udk2ihg116w39439zzbxz99d"

ALPHABET = b"abcdefghijklmnopqrstuvwxyz0123456789"
MASK = 2**32 - 1
# Pairs of bytes by their difference modulo 256; one pair of each sign is enough.
BYTES = [
    list({y > x: (x, y) for x in ALPHABET for y in ALPHABET if (y - x) & 0xFF == d}.values())
    for d in range(256)
]
State = tuple[int, int, int]


def state_after(block: bytes, length: int) -> State:
    """Return lookup3's state after the first 12 bytes of a text of this length."""
    start = 0x9E3779B9 + length + 3923095
    a, b, c = ((start + word) & MASK for word in struct.unpack("<3I", block))
    for turns in (4, 6, 8, 16, 19, 4):
        a = ((a - c) & MASK) ^ (c << turns | c >> 32 - turns) & MASK
        c = (c + b) & MASK
        a, b, c = b, c, a
    # Each round rotates the three variables; after six rounds they are in their first order.
    return a, b, c


def halves(difference: int) -> tuple[bytes, bytes] | None:
    """Return two strings of four letters whose numbers have this difference, if there are any."""

    def extend(place: int, borrow: int) -> list[tuple[int, int]] | None:
        if place == 4:
            return []
        byte_difference = difference >> 8 * place & 0xFF
        for pair in BYTES[(byte_difference + borrow) & 0xFF]:
            later_pairs = extend(place + 1, int(pair[1] - pair[0] - borrow < 0))
            if later_pairs is not None:
                return [pair, *later_pairs]
        return None

    pairs = extend(0, 0)
    return None if pairs is None else (bytes(x for x, _ in pairs), bytes(y for _, y in pairs))


def search(seed: int) -> tuple[str, str]:
    rng = random.Random(seed)
    blocks = [bytes(rng.choices(ALPHABET, k=12)) for _ in range(1000)]
    for first, second in itertools.combinations(blocks, 2):
        before, after = state_after(first, 24), state_after(second, 24)
        tails = [halves((x - y) & MASK) for x, y in zip(before, after, strict=True)]
        if all(tails):
            complete = [tail for tail in tails if tail is not None]
            ends = [b"".join(part) for part in zip(*complete, strict=True)]
            return (first + ends[0]).decode(), (second + ends[1]).decode()
    raise AssertionError("no two blocks can be completed to a collision: try another seed")


if __name__ == "__main__":
    print(*search(1))
