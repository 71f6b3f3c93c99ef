"""The texts that guards keep apart and split, on labelled pairs.

    python -m benchmarks.guards [FILE] [--record]

FILE is gzip'ed JSON lines with `set`, `guard`, `apart`, `a` and `b`. `apart` says whether `guard` is to
keep the two texts apart. For each set the benchmark says which share the guard keeps apart, and
which share the guard content does. A pair that a guard should keep apart and does not is merged if it
is similar enough; a pair that should stay together and does not is split by mistake.

A guard counts words of negation, so it cannot see an opposite: "refused" for "agreed". A set whose
negations were removed by hand has a second row without the pairs of opposites. A pair is one if a word
that only one of its texts has is in benchmarks/opposites.tsv, or is a word of the other text with a
prefix, as in "unlucky".

benchmarks/questions.tsv has questions of a cache, of our own: pairs that may share an answer, and pairs
that must not. Of each, it says how many match, and are merged with guards.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT, Figures, Table, identifier, options, publish, read_corpora
from textsim_db.measures import jaccard
from textsim_db.settings.named_values import Guard, GuardRules
from textsim_db.text.guard_lines import elements_apart
from textsim_db.text.shingles import shingles
from textsim_db.text.tokens import words

PAIRS = ROOT.parent / "shared" / "data" / "guards" / "pairs.jsonl.gz"
QUESTIONS = ROOT / "benchmarks" / "questions.tsv"
OPPOSITES = ROOT / "benchmarks" / "opposites.tsv"
PREFIXES = ("un", "in", "im", "ir", "il", "dis", "mis", "mal", "non")
BY_HAND = "negation removed "
"""Begins the names of the sets whose negations were removed by hand; a language follows."""
SHINGLE, THRESHOLD = "word:1", 0.5
"""Few questions that may share an answer match with longer shingles."""
CACHES = {
    "none": (),
    "numbers, negations": (Guard.NUMBERS, Guard.NEGATIONS),
    "content": (Guard.CONTENT,),
}


def are_apart(a: str, b: str, guards: Sequence[str]) -> bool:
    """Say whether guards keep two texts apart."""
    return bool(elements_apart(words(a), words(b), GuardRules(tuple(guards))))


def opposites(language: str) -> list[str]:
    """Return the patterns of a language for words that say the opposite of another word."""
    lines = (line.split("\t") for line in OPPOSITES.read_text("utf-8").splitlines())
    return [pattern for of, listed in lines if of == language for pattern in listed.split()]


def is_by_opposites(a: str, b: str, patterns: Sequence[str]) -> bool:
    """Say whether a word of one text only is an opposite."""
    differing = set(words(a)) ^ set(words(b))
    prefixed = {prefix + word for prefix in PREFIXES for word in differing}
    return bool(differing & prefixed) or any(
        fnmatchcase(word, pattern) for word in differing for pattern in patterns
    )


def sets_of(pairs: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the pairs of each set, and of some sets those without opposites."""
    sets: dict[str, list[dict[str, Any]]] = {}
    for name in dict.fromkeys(pair["set"] for pair in pairs):
        sets[name] = [pair for pair in pairs if pair["set"] == name]
        if name.startswith(BY_HAND):
            patterns = opposites(name.removeprefix(BY_HAND))
            sets[f"{name}, no opposites"] = [
                pair for pair in sets[name] if not is_by_opposites(pair["a"], pair["b"], patterns)
            ]
    return sets


def measure_sets(pairs: list[dict[str, Any]]) -> tuple[Figures, Table]:
    """Return the shares of each set, and their table."""
    figures: Figures = {}
    rows = [["pairs", "number", "should be", "guard", "kept apart by it", "by `content`"]]
    for name, chosen in sets_of(pairs).items():
        guard, apart = chosen[0]["guard"], chosen[0]["apart"]
        shares = [
            sum(are_apart(pair["a"], pair["b"], [kind]) for pair in chosen) / len(chosen)
            for kind in (guard, Guard.CONTENT)
        ]
        figures[identifier(name)] = {"apart": shares[0], "content": shares[1]}
        should = "apart" if apart else "together"
        shown = [f"{share:.3f}" for share in shares]
        rows.append([name, f"{len(chosen):,}", should, f"`{guard}`", *shown])
    return figures, rows


def measure_questions() -> tuple[Figures, Table]:
    """Return how many questions get the answer of another one, rightly and wrongly."""
    lines = [line.split("\t") for line in QUESTIONS.read_text("utf-8").splitlines()]
    figures: Figures = {}
    rows = [["guards", "right answers", "wrong answers"]]
    for name, guards in CACHES.items():
        hits = {"same": 0, "different": 0}
        for kind, a, b in lines:
            similarity = jaccard(shingles(a, SHINGLE), shingles(b, SHINGLE))
            hits[kind] += similarity >= THRESHOLD and not are_apart(a, b, guards)
        figures[identifier(name)] = hits
        totals = [sum(kind == each for kind, *_ in lines) for each in hits]
        rows.append([name, *(f"{n} of {m}" for n, m in zip(hits.values(), totals, strict=True))])
    return figures, rows


def main() -> None:
    """Measure the sets and the questions, and print two tables."""
    parser = options(__doc__)
    parser.add_argument("file", type=Path, nargs="?", default=PAIRS, help="the labelled pairs")
    given = parser.parse_args()
    ((_, pairs),) = read_corpora([given.file], 10**6)
    sets, table = measure_sets(pairs)
    questions, hits = measure_questions()
    figures = {"sets": sets, "questions": questions}
    publish(given.record, "guards", figures, {"guarded_pairs": table, "cached_questions": hits})


if __name__ == "__main__":
    main()
