"""How many changed words a page may have until it no longer matches, by language and shingle.

    python -m benchmarks.languages FILE [--pages 300] [--record]

FILE is gzip'ed JSON lines with `text` and `language`, a sentence a line. A page is ten of the sentences
of a language; in its copy some words are replaced with words of other sentences, at random places. In
scripts without spaces a word is taken to be two characters, in Thai four.
"""

from __future__ import annotations

import random
from pathlib import Path

from benchmarks.harness import options, publish, read_corpora
from textsim_db.measures import jaccard
from textsim_db.text.shingles import shingles
from textsim_db.text.tokens import words

CASES = (
    ("en", "English", 1, "word:3"),
    *(
        (code, name, 2, shingle)
        for code, name in (("zh", "Chinese"), ("ja", "Japanese"))
        for shingle in ("word:3", "word:6")
    ),
    *(("th", "Thai", 4, shingle) for shingle in ("word:3", "word:8")),
)
"""Code, language, characters or words that are replaced together, shingle."""
SHARES = (0.02, 0.03, 0.04, 0.05, 0.06)
THRESHOLD = 0.8


def changed(page: list[str], share: float, unit: int, rng: random.Random, pool: list[str]) -> str:
    """Return a page with this share of its words replaced."""
    copy = list(page)
    places = len(page) // unit
    for place in rng.sample(range(places), round(share * places)):
        other = rng.randrange(len(pool) - unit)
        copy[place * unit : (place + 1) * unit] = pool[other : other + unit]
    return " ".join(copy)


def matching(
    sentences: list[list[str]],
    share: float,
    unit: int,
    shingle: str,
    rng: random.Random,
    pages: int,
) -> float:
    """Return the share of the pages whose copy matches."""
    pool = [word for sentence in sentences for word in sentence]
    matches = 0
    for _ in range(pages):
        page = [word for sentence in rng.sample(sentences, 10) for word in sentence]
        copy = changed(page, share, unit, rng, pool)
        similarity = jaccard(shingles(" ".join(page), shingle), shingles(copy, shingle))
        matches += similarity >= THRESHOLD
    return matches / pages


def main() -> None:
    """Measure each language and shingle, and print a table."""
    parser = options(__doc__, pages=300, seed=1)
    parser.add_argument("file", type=Path, help="gzip'ed JSON lines with text and language")
    given = parser.parse_args()
    by_language: dict[str, list[list[str]]] = {}
    for _, documents in read_corpora([given.file], 10**6):
        for document in documents:
            by_language.setdefault(document["language"], []).append(words(document["text"]))
    table = [["language", "shingle", *(f"{share:.0%} changed" for share in SHARES)]]
    for code, language, unit, shingle in CASES:
        rng = random.Random(given.seed)
        shares = [
            matching(by_language[code], share, unit, shingle, rng, given.pages) for share in SHARES
        ]
        table.append([language, f"`{shingle}`", *(f"{share:.0%}" for share in shares)])
    publish(given.record, "languages", {}, {"languages": table})


if __name__ == "__main__":
    main()
