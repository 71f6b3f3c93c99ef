"""Plagiarism that a program made, by the rules of the PAN corpora, found by passages.

    python -m benchmarks.plagiarism FOLDER [--suspicious 1000] [--sources 20000] [--seed 1] [--record]

FOLDER has the file of abstracts. No package registry that we know has the PAN corpora, so this makes a
small one by their rules: Potthast, Stein, Barron-Cedeno and Rosso, "An Evaluation Framework for
Plagiarism Detection", COLING 2010. Half of the suspicious documents have one to five cases. A case is 50
to 150 words of a source, in which words or short phrases are moved, removed, inserted or replaced at
random. Inserted words are of the suspicious document. The degrees are ours, and there are no synonyms:
an operation in 20 words (low) or in 5 words (high).

The measures are PAN's, with words in the place of characters. Recall is the mean share of a case that
passages cover; precision is the mean share of a passage that a case covers, in both documents.
Granularity is the mean number of passages of a case that was found. The harmonic mean of recall and
precision, divided by log2(1 + granularity), is plagdet. PAN's participants join neighbouring passages:
the rows "joined" do so.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import textsim_db as ts
from benchmarks.harness import Figures, fresh_database, options, publish, read_corpora, shown
from textsim_db.text.tokens import normal_form

DEGREES = {"none": 0.0, "low": 1 / 20, "high": 1 / 5}
"""Operations a word."""
PASSAGES = (13, 8)
"""The words of the shortest passage, each in a corpus of its own."""
CASE_WORDS = (50, 150)
MOST_CASES = 5
FILLERS = 5
"""The abstracts of which a suspicious document is made."""
GAP = 20
"""The most words between passages that are joined."""
PHRASE = 3
"""The most words that an operation touches."""
LABELS = ("cases found", "recall", "precision", "granularity", "plagdet")

Words = list[str]


class Span(NamedTuple):
    """A part of a suspicious document that has a part of a source; the ends are exclusive."""

    document: int
    """The number of the suspicious document."""
    source: str
    """The key of the source."""
    start: int
    end: int
    source_start: int
    source_end: int

    def words(self) -> set[tuple[str, int]]:
        """Return the words of both parts."""
        own = {("", word) for word in range(self.start, self.end)}
        return own | {(self.source, word) for word in range(self.source_start, self.source_end)}

    def detects(self, other: Span) -> bool:
        """Say whether both parts overlap those of another span."""
        return (
            (self.document, self.source) == (other.document, other.source)
            and self.start < other.end
            and other.start < self.end
            and self.source_start < other.source_end
            and other.source_start < self.source_end
        )


class Suspicious(NamedTuple):
    """A suspicious document, and what was copied into it."""

    words: Words
    cases: list[Span]


def obfuscate(rng: random.Random, case: Words, others: Words, degree: float) -> Words:
    """Return the words of a case after random operations."""
    words = list(case)
    for _ in range(round(degree * len(case))):
        count, place = rng.randint(1, PHRASE), rng.randrange(len(words))
        operation = rng.choice(("move", "remove", "insert", "replace"))
        phrase = words[place : place + count]
        if operation != "insert":
            del words[place : place + count]
        if operation == "move":
            place = rng.randrange(len(words) + 1)
        elif operation != "remove":
            start = rng.randrange(len(others))
            phrase = others[start : start + count]
        if operation != "remove":
            words[place:place] = phrase
    return words


def suspicious_document(
    rng: random.Random, number: int, own: Words, sources: dict[str, Words], degree: float
) -> Suspicious:
    """Return a document of its own words, with cases of sources between them."""
    words: Words = []
    cases = []
    rest = own
    for _ in range(rng.randint(1, MOST_CASES)):
        key = rng.choice(list(sources))
        length = rng.randint(CASE_WORDS[0], min(CASE_WORDS[1], len(sources[key])))
        start = rng.randrange(len(sources[key]) - length + 1)
        case = obfuscate(rng, sources[key][start : start + length], own, degree)
        before = rng.randrange(len(rest) // 2 + 1)
        words += rest[:before]
        rest = rest[before:]
        cases.append(Span(number, key, len(words), len(words) + len(case), start, start + length))
        words += case
    return Suspicious(words + rest, cases)


def made_documents(
    rng: random.Random,
    count: int,
    fillers: Sequence[Words],
    sources: dict[str, Words],
    degree: float,
) -> list[Suspicious]:
    """Return suspicious documents, of which every other one has no case."""
    long_enough = {key: words for key, words in sources.items() if len(words) >= CASE_WORDS[0]}
    documents = []
    for number in range(count):
        own = [word for words in rng.sample(fillers, FILLERS) for word in words]
        if number % 2:
            documents.append(Suspicious(own, []))
        else:
            documents.append(suspicious_document(rng, number, own, long_enough, degree))
    return documents


def detections(corpus: ts.Corpus, documents: Sequence[Suspicious]) -> list[Span]:
    """Return the passages of all suspicious documents."""
    return [
        Span(
            number,
            found.key,
            found.in_text,
            found.in_text + found.words,
            found.in_document,
            found.in_document + found.words,
        )
        for number, document in enumerate(documents)
        for found in corpus.passages(" ".join(document.words))
    ]


def joined(found: Sequence[Span]) -> list[Span]:
    """Return passages, with those joined that are at most GAP words apart in both documents."""
    result: list[Span] = []
    for span in sorted(found):
        last = result[-1] if result else None
        if (
            last is not None
            and last[:2] == span[:2]
            and span.start - last.end <= GAP
            and -GAP <= span.source_start - last.source_end <= GAP
        ):
            ends = max(last.end, span.end), max(last.source_end, span.source_end)
            source_start = min(last.source_start, span.source_start)
            result[-1] = Span(*last[:3], ends[0], source_start, ends[1])
        else:
            result.append(span)
    return result


def share_covered(span: Span, others: Sequence[Span]) -> float:
    """Return the share of the words of a span that others have, in both documents."""
    words = span.words()
    covered = {word for other in others for word in other.words()}
    return len(words & covered) / len(words)


def measures(cases: Sequence[Span], found: Sequence[Span]) -> Figures:
    """Return PAN's measures of passages."""
    by_document: dict[int, list[Span]] = {}
    for span in found:
        by_document.setdefault(span.document, []).append(span)
    of_case = [[r for r in by_document.get(s.document, []) if r.detects(s)] for s in cases]
    case_of: dict[Span, list[Span]] = {span: [] for span in found}
    for case, its_passages in zip(cases, of_case, strict=True):
        for span in its_passages:
            case_of[span].append(case)
    recall = statistics.mean(map(share_covered, cases, of_case))
    precision = statistics.mean(share_covered(*each) for each in case_of.items())
    granularity = statistics.mean(len(each) for each in of_case if each)
    harmonic = 2 * recall * precision / (recall + precision)
    return {
        "cases_found": sum(map(bool, of_case)) / len(cases),
        "recall": recall,
        "precision": precision,
        "granularity": granularity,
        "plagdet": harmonic / math.log2(1 + granularity),
    }


def main() -> None:
    """Measure each degree with each length of passages, and print a table."""
    parser = options(__doc__, suspicious=1_000, sources=20_000, seed=1)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    ((_, texts),) = read_corpora([given.folder / "arxiv.jsonl.gz"], 60_000)
    words = [normal_form(document["text"]).split() for document in texts]
    sources = {f"{number}": own for number, own in enumerate(words[: given.sources])}
    fillers = words[given.sources :]
    rows = [["obfuscation", "passages of", *LABELS]]
    figures: Figures = {}
    with fresh_database() as bench:
        for passages in PASSAGES:
            corpus = bench.db.create_corpus(f"passages-{passages}", passages=passages)
            corpus.add_many((key, " ".join(own)) for key, own in sources.items())
        for degree, operations in DEGREES.items():
            rng = random.Random(given.seed)
            documents = made_documents(rng, given.suspicious, fillers, sources, operations)
            cases = [case for document in documents for case in document.cases]
            for passages in PASSAGES:
                corpus = bench.db.corpus(f"passages-{passages}")
                found = detections(corpus, documents)
                for name, spans in {"": found, "_joined": joined(found)}.items():
                    measured = measures(cases, spans)
                    figures[f"{degree}_{passages}{name}"] = measured | {"cases": len(cases)}
                    label = f"{passages} words{name.replace('_', ', ')}"
                    rows.append([degree, label, *map(shown, measured.values())])
    publish(given.record, "plagiarism", figures, {"plagiarism": rows})


if __name__ == "__main__":
    main()
