"""Two different words with the same hashtextextended, and how they were found.

lookup3 takes 12 bytes at a time: they are added to its state, and the state is mixed. So of two
words of 24 letters, the second halves can make up for what the first halves did to the state, where
the three 32-bit differences happen to be differences of letters and digits. One pair in some 8,000
will do. Run this file to search again.
"""

from __future__ import annotations

import itertools
import random
import struct

FIRST = "3supc5uhsrmmdzzyk099knq9"
SECOND = "udk2ihg116w39439zzbxz99d"

ALPHABET = b"abcdefghijklmnopqrstuvwxyz0123456789"
MASK = 2**32 - 1
# Pairs of bytes by their difference modulo 256; one with each sign will do.
BYTES = [
    list({y > x: (x, y) for x in ALPHABET for y in ALPHABET if (y - x) & 0xFF == d}.values())
    for d in range(256)
]
State = tuple[int, int, int]


def state_after(block: bytes, length: int) -> State:
    """Return lookup3's state after the first 12 bytes of a text of some length."""
    start = 0x9E3779B9 + length + 3923095
    a, b, c = ((start + word) & MASK for word in struct.unpack("<3I", block))
    for turns in (4, 6, 8, 16, 19, 4):
        a = ((a - c) & MASK) ^ (c << turns | c >> 32 - turns) & MASK
        c = (c + b) & MASK
        a, b, c = b, c, a
    # Each round works on the three in turn; after six of them they stand as they began.
    return a, b, c


def halves(difference: int) -> tuple[bytes, bytes] | None:
    """Return four bytes of the alphabet twice, as numbers the second less the first, if any do."""

    def extend(place: int, borrow: int) -> list[tuple[int, int]] | None:
        if place == 4:
            return []
        wanted = difference >> 8 * place & 0xFF
        for pair in BYTES[(wanted + borrow) & 0xFF]:
            rest = extend(place + 1, int(pair[1] - pair[0] - borrow < 0))
            if rest is not None:
                return [pair, *rest]
        return None

    found = extend(0, 0)
    return None if found is None else (bytes(x for x, _ in found), bytes(y for _, y in found))


def search(seed: int) -> tuple[str, str]:
    rng = random.Random(seed)
    blocks = [bytes(rng.choices(ALPHABET, k=12)) for _ in range(1000)]
    for one, other in itertools.combinations(blocks, 2):
        before, after = state_after(one, 24), state_after(other, 24)
        tails = [halves((x - y) & MASK) for x, y in zip(before, after, strict=True)]
        if all(tails):
            complete = [tail for tail in tails if tail is not None]
            ends = [b"".join(part) for part in zip(*complete, strict=True)]
            return (one + ends[0]).decode(), (other + ends[1]).decode()
    raise AssertionError("try another seed")


if __name__ == "__main__":
    print(*search(1))
