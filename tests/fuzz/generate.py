"""Hostile texts and bytes, generated from a seed."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable

import numpy as np

from tests.support.random_texts import ALPHABET, CODE_POINTS, MARKS, random_text
from tests.support.real_corpora import DATA, records
from textsim_db.db.binary_format import dump_array

REAL_TEXTS = 300

# Characters that NFKC expands: U+FDFA becomes eighteen characters.
MONSTERS = (
    "ﷺﷻﷲ㍿㌀㌕㍖㍻㏂⑳🄁㈪ſﬃĳŉ½‥℡㋏㏿🈂\U0001d15e\U0001d160\U0001d1bb\u0344\u0f73\u0958\ufb2c\u1fb7"
)
# Characters whose lower case has another length in bytes, or several characters in other systems.
FOLDING = "\u0130\u023a\u023e\u2c62\u2c64\u2126\u212a\u212b\u1e9eẞßΣσςİIıⱥȾⱮ\u2c6d\u10a0\u13a0"
FOLDING += "\uab70\U00010400"
SPACELESS = (
    "漢字仮名かなカナไทยกขลາວពាភម\u0e31\u0e34\u0eb1\u17b7\u102f\u3099々〇\U00020000\U0002f800"
)
CONTROLS = "".join(map(chr, [*range(1, 32), *range(127, 160)]))
CONTROLS += "\u200b\u200c\u200d\u200e\u202e\u2066\ufeff"
EDGES = "\x7f\x80\u07ff\u0800\ufffd\uffff\U00010000\U0010ffff\ud7ff\ue000a1 "
SEPARATORS = ("", "", "", "", " ", "\n", "-", "\u00a0", "\u0301")
ALL = "".join(map(chr, CODE_POINTS))
Kind = Callable[[random.Random, list[str], list[str]], str]


def batch(seed: int, number: int, count: int, real: list[str]) -> list[str]:
    """Return the texts of one batch; seed and number determine them."""
    rng = random.Random(f"{seed} {number}")
    texts: list[str] = []
    kinds = rng.choices(_KINDS, _WEIGHTS, k=count)
    for kind in kinds:
        texts.append(kind(rng, texts, real))
    return texts


def real_texts() -> list[str]:
    """Return texts of many languages for mutations; if the shared data exist, also their texts."""
    texts = [
        "The quick brown fox jumps over the lazy dog. Быстрая лиса, ταχεία ΑΛΕΠΟΎΣ, 素早い狐が跳ぶ, "
        "चतुर लोमड़ी, الثعلب السريع, สุนัขจิ้งจอก, İstanbul’da 12½ km², 빠른 여우, Đường Việt."
    ]
    for file in sorted(DATA.glob("*.jsonl.gz")):
        rows = records(file.name.removesuffix(".jsonl.gz"), 20_000)
        texts_of_file = [str(row["text"])[:4000] for row in rows]
        texts += random.Random(file.name).sample(texts_of_file, min(REAL_TEXTS, len(texts_of_file)))
    return [text.replace("\0", " ") for text in texts if text]


def arrays(rng: random.Random, count: int) -> list[bytes]:
    """Return binary arrays of int4: well-formed, truncated, changed, extended and spliced ones."""
    results: list[bytes] = []
    for _ in range(count):
        size = rng.choice([0, 0, 1, 2, 3, 17, 60])
        values = np.frombuffer(rng.randbytes(4 * size), np.int32)
        data = bytearray(dump_array(values))
        chance = rng.random()
        if chance < 0.3:
            data = data[: rng.randrange(len(data) + 1)]
        elif chance < 0.5:
            for _ in range(rng.randrange(1, 5)):
                data[rng.randrange(len(data))] = rng.randrange(256)
        elif chance < 0.6:
            data = bytearray(rng.randbytes(rng.randrange(80)))
        elif chance < 0.7:
            data += rng.randbytes(rng.randrange(40))
        elif chance < 0.8 and results:
            data = data[: rng.randrange(len(data) + 1)] + rng.choice(results)[rng.randrange(20) :]
        results.append(bytes(data))
    return results


def _block(rng: random.Random, texts: list[str], real: list[str]) -> str:
    start = rng.randrange(0, len(ALL), 128)
    return _join_random(rng, ALL[start : start + 128])


def _from(alphabet: str) -> Kind:
    def generate(rng: random.Random, texts: list[str], real: list[str]) -> str:
        return _join_random(rng, alphabet)

    return generate


def _join_random(rng: random.Random, alphabet: str) -> str:
    size = rng.choice((1, 2, 3, 7, 16, 40, 90))
    if rng.random() < 0.5:
        return rng.choice(SEPARATORS).join(rng.choices(alphabet, k=size))
    return "".join(rng.choices(alphabet + "  a", k=size))


def _random(rng: random.Random, texts: list[str], real: list[str]) -> str:
    return random_text(rng)


def _repeated(rng: random.Random, texts: list[str], real: list[str]) -> str:
    """Return one character or a few, thousands of times."""
    length = rng.choice((1000, 4096, 10_000))
    if rng.random() < 0.5:
        return rng.choice(ALPHABET + MONSTERS + FOLDING + SPACELESS) * length
    return "".join(rng.choices(rng.choice((ALPHABET, FOLDING, SPACELESS, MARKS, "aé")), k=length))


def _marked(rng: random.Random, texts: list[str], real: list[str]) -> str:
    """Return letters with many unordered marks, which normalisation must sort."""
    return "".join(
        rng.choice("aé漢กक") + "".join(rng.choices(MARKS, k=rng.choice((1, 5, 30, 31, 200))))
        for _ in range(rng.randrange(1, 4))
    )


def _empty(rng: random.Random, texts: list[str], real: list[str]) -> str:
    return rng.choice(("", " ", "\n", "-", "\u0301", "\u0378", "\U000e0001", "…"))


def _mutated(rng: random.Random, texts: list[str], real: list[str]) -> str:
    """Return a piece of a real text with some edits."""
    text = rng.choice(real)
    start = rng.randrange(len(text))
    text = text[start : start + rng.choice((10, 60, 60, 250))]
    for _ in range(rng.randrange(4)):
        start_of_edit = rng.randrange(len(text) + 1)
        end_of_edit = min(len(text), start_of_edit + rng.randrange(6))
        edit = rng.randrange(7)
        if edit == 0:
            text = text[:start_of_edit] + text[end_of_edit:]
        elif edit == 1:
            text = text[:start_of_edit] + rng.choice(_HOSTILE) + text[end_of_edit:]
        elif edit == 2:
            repeated = text[start_of_edit:end_of_edit] * rng.choice((2, 3, 50))
            text = text[:start_of_edit] + repeated + text[end_of_edit:]
        elif edit == 3:
            text = text.upper()
        elif edit == 4:
            text = unicodedata.normalize(rng.choice(("NFD", "NFC", "NFKD")), text)
        elif edit == 5:
            text = text[end_of_edit:] + text[:start_of_edit]
        else:
            text = text.replace(" ", rng.choice(SEPARATORS))
    return text


def _spliced(rng: random.Random, texts: list[str], real: list[str]) -> str:
    """Return parts of two earlier texts, joined anywhere, even between a character and its marks."""
    if not texts:
        return "a"
    left, right = rng.choice(texts), rng.choice(texts)
    left, right = left[:2000], right[:2000]
    at, end = rng.randrange(len(left) + 1), rng.randrange(len(right) + 1)
    return left[:at] + rng.choice(SEPARATORS) + right[end:]


def _varied(rng: random.Random, texts: list[str], real: list[str]) -> str:
    """Return an earlier text with one character inserted, removed or replaced."""
    if not texts:
        return ""
    text = rng.choice(texts)
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(("", "x", " ", rng.choice(_HOSTILE))) + text[at + 1 :]


_HOSTILE = ALPHABET + MONSTERS + FOLDING + SPACELESS + CONTROLS + EDGES.replace("\ud7ff", "")
_CHOICES: list[tuple[Kind, float]] = [
    *((_block, 22), (_from(MARKS), 4), (_from(MONSTERS), 6), (_from(FOLDING), 6)),
    *((_from(SPACELESS), 6), (_from(CONTROLS), 3), (_from(EDGES), 3), (_from(_HOSTILE), 8)),
    *((_random, 8), (_marked, 2), (_repeated, 0.15), (_empty, 2)),
    *((_mutated, 16), (_spliced, 7), (_varied, 7)),
]
_KINDS = [kind for kind, _ in _CHOICES]
_WEIGHTS = [weight for _, weight in _CHOICES]
