"""Texts and bytes that nobody means well with, from a seed."""

from __future__ import annotations

import gzip
import json
import random
import unicodedata
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np

from tests.support.random_texts import ALPHABET, CODE_POINTS, MARKS, random_text
from textsim_db.db.binary_format import dump_array

DATA = Path(__file__).parents[2].parent / "shared" / "data"
REAL_TEXTS = 300

# Eighteen characters come out of U+FDFA; U+1D160 becomes three marks and letters again.
MONSTERS = (
    "ﷺﷻﷲ㍿㌀㌕㍖㍻㏂⑳🄁㈪ſﬃĳŉ½‥℡㋏㏿🈂\U0001d15e\U0001d160\U0001d1bb\u0344\u0f73\u0958\ufb2c\u1fb7"
)
# Lower case that is longer or shorter in bytes, or is not one character in other systems.
FOLDING = (
    "\u0130\u023a\u023e\u2c62\u2c64\u2126\u212a\u212b\u1e9eẞßΣσςİIıⱥȾⱮ"
    "\u2c6d\u10a0\u13a0\uab70\U00010400"
)
SPACELESS = (
    "漢字仮名かなカナไทยกขลາວពាភម\u0e31\u0e34\u0eb1\u17b7\u102f\u3099々〇\U00020000\U0002f800"
)
CONTROLS = (
    "".join(map(chr, [*range(1, 32), *range(127, 160)]))
    + "\u200b\u200c\u200d\u200e\u202e\u2066\ufeff"
)
EDGES = "\x7f\x80\u07ff\u0800\ufffd\uffff\U00010000\U0010ffff\ud7ff\ue000a1 "
SEPARATORS = ("", "", "", "", " ", "\n", "-", "\u00a0", "\u0301")
ALL = "".join(map(chr, CODE_POINTS))
Kind = Callable[[random.Random, list[str], list[str]], str]


def batch(seed: int, number: int, count: int, real: list[str]) -> list[str]:
    """Return the texts of one batch: the same for the same seed and number."""
    rng = random.Random(f"{seed} {number}")
    texts: list[str] = []
    kinds = rng.choices(_KINDS, _WEIGHTS, k=count)
    for kind in kinds:
        texts.append(kind(rng, texts, real))
    return texts


def real_texts() -> list[str]:
    """Return texts of many languages to be mutated: those of the shared data, where they are."""
    found = [
        "The quick brown fox jumps over the lazy dog. Быстрая лиса, ταχεία ΑΛΕΠΟΎΣ, 素早い狐が跳ぶ, "
        "चतुर लोमड़ी, الثعلب السريع, สุนัขจิ้งจอก, İstanbul’da 12½ km², 빠른 여우, Đường Việt."
    ]
    for file in sorted(DATA.glob("*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            some = [str(json.loads(line)["text"])[:4000] for line in islice(lines, 20_000)]
        found += random.Random(file.name).sample(some, min(REAL_TEXTS, len(some)))
    return [text.replace("\0", " ") for text in found if text]


def arrays(rng: random.Random, count: int) -> list[bytes]:
    """Return what claims to be arrays of int4: good ones, cut ones, and such with bits changed."""
    found: list[bytes] = []
    for _ in range(count):
        size = rng.choice([0, 0, 1, 2, 3, 17, 60])
        values = np.frombuffer(rng.randbytes(4 * size), np.int32)
        data = bytearray(dump_array(values))
        what = rng.random()
        if what < 0.3:
            data = data[: rng.randrange(len(data) + 1)]
        elif what < 0.5:
            for _ in range(rng.randrange(1, 5)):
                data[rng.randrange(len(data))] = rng.randrange(256)
        elif what < 0.6:
            data = bytearray(rng.randbytes(rng.randrange(80)))
        elif what < 0.7:
            data += rng.randbytes(rng.randrange(40))
        elif what < 0.8 and found:
            data = data[: rng.randrange(len(data) + 1)] + rng.choice(found)[rng.randrange(20) :]
        found.append(bytes(data))
    return found


def _block(rng: random.Random, texts: list[str], real: list[str]) -> str:
    start = rng.randrange(0, len(ALL), 128)
    return _joined(rng, ALL[start : start + 128])


def _of(alphabet: str) -> Kind:
    def made(rng: random.Random, texts: list[str], real: list[str]) -> str:
        return _joined(rng, alphabet)

    return made


def _joined(rng: random.Random, alphabet: str) -> str:
    size = rng.choice((1, 2, 3, 7, 16, 40, 90))
    if rng.random() < 0.5:
        return rng.choice(SEPARATORS).join(rng.choices(alphabet, k=size))
    return "".join(rng.choices(alphabet + "  a", k=size))


def _any(rng: random.Random, texts: list[str], real: list[str]) -> str:
    return random_text(rng)


def _long(rng: random.Random, texts: list[str], real: list[str]) -> str:
    """One character or a few, thousands of times."""
    length = rng.choice((1000, 4096, 10_000))
    if rng.random() < 0.5:
        return rng.choice(ALPHABET + MONSTERS + FOLDING + SPACELESS) * length
    return "".join(rng.choices(rng.choice((ALPHABET, FOLDING, SPACELESS, MARKS, "aé")), k=length))


def _deep(rng: random.Random, texts: list[str], real: list[str]) -> str:
    """A letter under many marks, in no order: normalisation has to sort them."""
    return "".join(
        rng.choice("aé漢กक") + "".join(rng.choices(MARKS, k=rng.choice((1, 5, 30, 31, 200))))
        for _ in range(rng.randrange(1, 4))
    )


def _empty(rng: random.Random, texts: list[str], real: list[str]) -> str:
    return rng.choice(("", " ", "\n", "-", "\u0301", "\u0378", "\U000e0001", "…"))


def _mutated(rng: random.Random, texts: list[str], real: list[str]) -> str:
    """A piece of a real text with something done to it."""
    text = rng.choice(real)
    start = rng.randrange(len(text))
    text = text[start : start + rng.choice((10, 60, 60, 250))]
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.randrange(6))
        what = rng.randrange(7)
        if what == 0:
            text = text[:at] + text[end:]
        elif what == 1:
            text = text[:at] + rng.choice(_HOSTILE) + text[end:]
        elif what == 2:
            text = text[:at] + text[at:end] * rng.choice((2, 3, 50)) + text[end:]
        elif what == 3:
            text = text.upper()
        elif what == 4:
            text = unicodedata.normalize(rng.choice(("NFD", "NFC", "NFKD")), text)
        elif what == 5:
            text = text[end:] + text[:at]
        else:
            text = text.replace(" ", rng.choice(SEPARATORS))
    return text


def _spliced(rng: random.Random, texts: list[str], real: list[str]) -> str:
    """Two texts from before, cut anywhere, a character's marks left behind."""
    if not texts:
        return "a"
    one, other = rng.choice(texts), rng.choice(texts)
    one, other = one[:2000], other[:2000]
    at, end = rng.randrange(len(one) + 1), rng.randrange(len(other) + 1)
    return one[:at] + rng.choice(SEPARATORS) + other[end:]


def _again(rng: random.Random, texts: list[str], real: list[str]) -> str:
    """A text from before with one character more, less, or other."""
    if not texts:
        return ""
    text = rng.choice(texts)
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(("", "x", " ", rng.choice(_HOSTILE))) + text[at + 1 :]


_HOSTILE = ALPHABET + MONSTERS + FOLDING + SPACELESS + CONTROLS + EDGES.replace("\ud7ff", "")
_CHOICES: list[tuple[Kind, float]] = [
    (_block, 22),
    (_of(MARKS), 4),
    (_of(MONSTERS), 6),
    (_of(FOLDING), 6),
    (_of(SPACELESS), 6),
    (_of(CONTROLS), 3),
    (_of(EDGES), 3),
    (_of(_HOSTILE), 8),
    (_any, 8),
    (_deep, 2),
    (_long, 0.15),
    (_empty, 2),
    (_mutated, 16),
    (_spliced, 7),
    (_again, 7),
]
_KINDS = [kind for kind, _ in _CHOICES]
_WEIGHTS = [weight for _, weight in _CHOICES]
