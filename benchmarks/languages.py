"""Identifying the languages of texts, beside py3langid, whose model is used; one core, no database.

    python -m benchmarks.languages FILE.jsonl.gz... [--documents 20000] [--rounds 3] [--record]

Both get normal forms. If the documents name their language, the share of right answers is shown.
"""

from __future__ import annotations

import statistics
from itertools import pairwise
from pathlib import Path
from typing import Any

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from benchmarks.harness import (
    in_turns,
    milliseconds,
    options,
    publish,
    read_corpora,
    shown,
    use_one_core,
)
from textsim_db.text.languages import identify
from textsim_db.text.storable_text import to_bytes
from textsim_db.text.tokens import tokenize


def measure(
    name: str, documents: list[dict[str, Any]], library: LanguageIdentifier, rounds: int
) -> list[str]:
    """Return a row of the table."""
    tokens = tokenize([to_bytes(document["text"]) for document in documents])
    ends = tokens.normal_offsets.tolist()
    forms = [tokens.span(a, b) for a, b in pairwise(ends)]

    kilobytes = float(ends[-1]) / 1e3

    def ours(number: int) -> float:
        return kilobytes / milliseconds(identify, tokens)

    def theirs(number: int) -> float:
        return kilobytes / milliseconds(lambda: [*map(library.classify, forms)])

    rates = in_turns({"ours": ours, "theirs": theirs}, rounds)
    languages = list(identify(tokens))
    if languages != [library.classify(form)[0] for form in forms]:
        raise SystemExit(f"{name}: the library names other languages than textsim-db")
    right = ""
    if "language" in documents[0]:
        named = [document["language"] for document in documents]
        same = sum(a == b for a, b in zip(languages, named, strict=True))
        right = f"{same / len(named):.1%}"
    medians = (shown(statistics.median(values)) for values in rates.values())
    return [f"{name}, {len(documents):,}", *medians, right]


def main() -> None:
    """Measure each file, and print a table."""
    parser = options(__doc__, documents=20_000, rounds=3)
    parser.add_argument("files", nargs="+", type=Path)
    given = parser.parse_args()
    use_one_core()
    library = LanguageIdentifier.from_model_file(MODEL_FILE)
    identify(tokenize([b"compiled and read before anything is measured"]))
    rows = [["documents", "MB/s", "py3langid itself", "right language"]]
    for name, documents in read_corpora(given.files, given.documents):
        rows.append(measure(name, documents, library, given.rounds))
    publish(given.record, "languages", {}, {"languages": rows})


if __name__ == "__main__":
    main()
