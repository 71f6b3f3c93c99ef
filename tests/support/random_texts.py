"""Random texts: combinations of characters that a uniform choice hardly makes, and filled templates."""

from __future__ import annotations

import random

CODE_POINTS = [point for point in range(1, 0x110000) if not 0xD800 <= point <= 0xDFFF]


# Characters that interact in the normal form.
MARKS = "\u0316\uff9e\uff9f\u0344\u0f73"
MARKS += "\u0301\u0327\u0323\u0308\u0345\u0315\u05b0\u05b1\u0e48\u0e38\u3099\u309a\u1dc0\U0001d165"
LETTERS = "aAeEßẞSsςσΣıİIiﬁǅǆΩΩKŉẛ가각ᄀ\u1161\u11a8نﷺकक्ष"
JAMO = "\u1100\u1161\u11a8\u314f\u3133\uffc2\uffa1가각"
SPACELESS = "漢字かがカｶﾞกําເປំកမ々〇㈱"
OTHERS = (
    " \t\n\u00a0\u2028\u200b\u200d\u00ad-_'’.½²①Ⅷ٣३\U0001f98a\ufe0f\ue000\uffff\u0378\U0001fbff"
)
UNASSIGNED = "\u0870\u1c89\u2c2f\ua7c0\U00010570\U0001e030\U00011f00\U0001fae8\U000323b0"
ALPHABET = MARKS + LETTERS + JAMO + SPACELESS + OTHERS + UNASSIGNED


def random_text(rng: random.Random) -> str:
    length = rng.choice([0, 1, 2, 3, 10, 40, 200])
    chance = rng.random()
    if chance < 0.1:
        return random_runs_of_marks(rng)
    if chance < 0.5:
        return "".join(rng.choices(ALPHABET, k=length))
    return "".join(map(chr, rng.choices(CODE_POINTS, k=length)))


def random_runs_of_marks(rng: random.Random) -> str:
    """Return characters, each followed by a run of marks; many runs are about 30 marks long."""
    return "".join(
        rng.choice(ALPHABET) + "".join(rng.choices(MARKS, k=rng.choice((0, 1, 28, 30, 31, 33, 70))))
        for _ in range(rng.randrange(1, 5))
    )


HEADER = [f"head{i}" for i in range(30)]
FOOTER = [f"foot{i}" for i in range(30)]


def templated(rng: random.Random, count: int) -> dict[str, str]:
    """Return texts of a header, a body of 40 words and a footer; each body comes in two versions."""
    texts = {}
    for number in range(count // 2):
        body = [f"w{rng.randrange(5000)}" for _ in range(40)]
        texts[f"{number:04}a"] = " ".join([*HEADER, *body, *FOOTER])
        body[rng.randrange(40)] = "changed"
        texts[f"{number:04}b"] = " ".join([*HEADER, *body, *FOOTER])
    return texts
