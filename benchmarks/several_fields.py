"""Pairs of similar titles before and after rules on other fields: precision, recall, largest cluster.

    python -m benchmarks.several_fields [--file FILE] [--record]

The file has papers of arXiv, each as it was in two years. A pair of texts is right if both are the same
paper. The first line of a text is its title, the other lines are its abstract, and the year of the first
version is in its identifier.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import textsim_db as ts
from benchmarks.harness import Bench, Figures, fresh_database, options, publish, read_corpora

FILE = Path("../shared/data/arxiv_revisions.jsonl.gz")
THRESHOLDS = (0.3, 0.4, 0.5)
YEARS = "abs(x.year - y.year) <= 1"
ABSTRACTS = "textsim.jaccard('title', x.abstract, y.abstract) >= 0.2"
RULES = {
    "titles": "true",
    "years": YEARS,
    "abstracts": f"{YEARS} AND {ABSTRACTS}",
}
LABELS = {
    "titles": "similar titles",
    "years": "&emsp;and at most a year apart",
    "abstracts": "&emsp;and abstracts that share words",
}


def load(bench: Bench, documents: list[dict[str, Any]]) -> None:
    """Index the titles, and store all fields in a table."""
    bench.connection.execute(
        "CREATE TABLE record (id text PRIMARY KEY, paper text, year int, title text, abstract text)"
    )
    titles = {}
    with bench.connection.cursor() as cursor, cursor.copy("COPY record FROM STDIN") as copy:
        for document in documents:
            titles[document["id"]], _, abstract = document["text"].partition("\n")
            paper = document["label"]
            row = document["id"], paper, first_year(paper), titles[document["id"]], abstract
            copy.write_row(row)
    corpus = bench.db.create_corpus("title", shingle="word:1", threshold=THRESHOLDS[0], recall=1)
    corpus.add_many(titles.items())


def first_year(paper: str) -> int:
    """Return the year in an identifier, such as 2018 of "1803.00012" and 1999 of "math/9912001"."""
    digits = re.search(r"(\d\d)\d\d[.\d]", paper)
    assert digits is not None
    year = int(digits[1])
    return year + (1900 if year > 90 else 2000)


def measure(bench: Bench, threshold: float, rule: str) -> Figures:
    """Return the figures of the pairs that pass a rule."""
    query = (
        "SELECT p.a, p.b, x.paper = y.paper FROM pair p JOIN record x ON x.id = p.a "
        f"JOIN record y ON y.id = p.b WHERE p.similarity >= {threshold} AND {rule}"
    )
    pairs = bench.connection.execute(query.encode()).fetchall()
    papers = bench.number("SELECT count(DISTINCT paper) FROM record")
    right = sum(is_right for *_, is_right in pairs)
    clusters = ts.group_pairs([(a, b) for a, b, _ in pairs], "single")
    return {
        "pairs": len(pairs),
        "precision": right / len(pairs),
        "recall": right / papers,
        "largest": len(clusters[0].keys),
    }


def table_of(figures: Mapping[str, Mapping[str, Figures]]) -> list[list[str]]:
    """Return a table with a row for each threshold and rule."""
    rows = [["pairs", "threshold", "number", "precision", "recall", "largest cluster"]]
    for threshold, by_rule in figures.items():
        for rule, values in by_rule.items():
            shares = (f"{values[name]:.1%}" for name in ("precision", "recall"))
            place = threshold.replace("t", "0.")
            rows.append(
                [LABELS[rule], place, f"{values['pairs']:,}", *shares, f"{values['largest']}"]
            )
    return rows


def main() -> None:
    """Measure each rule at each threshold, and print a table."""
    parser = options(__doc__)
    parser.add_argument("--file", type=Path, default=FILE, help=f"default: {FILE}")
    given = parser.parse_args()
    figures: dict[str, dict[str, Figures]] = {}
    ((_, documents),) = read_corpora([given.file], 10**9)
    with fresh_database() as bench:
        load(bench, documents)
        bench.connection.execute("CREATE TABLE pair AS SELECT * FROM textsim.pairs('title')")
        for threshold in THRESHOLDS:
            figures[f"t{threshold * 10:.0f}"] = {
                name: measure(bench, threshold, rule) for name, rule in RULES.items()
            }
    publish(given.record, "several_fields", figures, {"several_fields": table_of(figures)})


if __name__ == "__main__":
    main()
