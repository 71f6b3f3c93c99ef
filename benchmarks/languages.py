"""Identifying the languages of texts, beside py3langid, whose model is used; one core, no database.

    python -m benchmarks.languages FILE.jsonl.gz... [--documents 20000] [--rounds 3]

Both get normal forms. If the documents name their language, the share of right answers is printed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import time
from itertools import islice, pairwise
from pathlib import Path

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from benchmarks.record import add_option, record
from textsim_db.text.languages import identify
from textsim_db.text.tokens import tokenize
from textsim_db.text.utf8 import to_bytes


def main() -> None:
    """Run the benchmark and print medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    add_option(parser)
    given = parser.parse_args()
    table = [["documents", "MB/s", "py3langid itself", "right language"]]
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    library = LanguageIdentifier.from_model_file(MODEL_FILE)
    identify(tokenize([b"compiled and read before anything is measured"]))
    for path in given.files:
        with gzip.open(path, "rt") as lines:
            read = [json.loads(line) for line in islice(lines, given.documents)]
        tokens = tokenize([to_bytes(document["text"]) for document in read])
        ends = tokens.normal_offsets.tolist()
        forms = [tokens.span(a, b) for a, b in pairwise(ends)]
        ours, theirs = [], []
        for _ in range(given.rounds):
            start = time.perf_counter()
            found = identify(tokens)
            middle = time.perf_counter()
            expected = [library.classify(form)[0] for form in forms]
            ours.append(ends[-1] / 1e6 / (middle - start))
            theirs.append(ends[-1] / 1e6 / (time.perf_counter() - middle))
        same = sum(a == b for a, b in zip(found, expected, strict=True))
        print(
            f"{path.name}: {len(read):,} documents, {ends[-1] / 1e6:.1f} MB: "
            f"{statistics.median(ours):.1f} MB/s, py3langid {statistics.median(theirs):.1f} MB/s; "
            f"the same language for {same:,}"
        )
        label = f"{path.name.removesuffix('.jsonl.gz')}, {len(read):,}"
        table.append([label, *(f"{statistics.median(rates):.1f}" for rates in (ours, theirs)), ""])
        if "language" in read[0]:
            right = sum(a == d["language"] for a, d in zip(found, read, strict=True))
            print(f"  right, by the language of the document: {right / len(read):.1%}")
            table[-1][-1] = f"{right / len(read):.1%}"
    if given.record:
        record("languages", {}, {"languages": table})


if __name__ == "__main__":
    main()
