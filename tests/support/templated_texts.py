"""Texts that fill in one template."""

from __future__ import annotations

import random

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
