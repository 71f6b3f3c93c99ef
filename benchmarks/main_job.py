"""The main job: load, queries, batches of queries, all pairs and clusters.

python -m benchmarks.main_job [--documents 200000] [--words 200]
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.corpus_steps import LABELS, STEPS, Measured, measure, write_texts
from benchmarks.generate import documents
from benchmarks.harness import fresh_database, options, publish, table_of

LEFT_OUT = ("add", "insert")


def main() -> None:
    """Measure the steps of the main job, and print their figures."""
    given = options(__doc__, documents=200_000, words=200).parse_args()
    steps = {step: blocks for step, blocks in STEPS.items() if step not in LEFT_OUT}
    with tempfile.TemporaryDirectory() as folder, fresh_database() as bench:
        some = documents(given.documents, given.words)
        texts = write_texts(Path(folder), some, given.documents)
        sides = measure({"median": Measured(bench, texts)}, steps)
    publish(given.record, "main_job", sides["median"], {"main_job": table_of(sides, LABELS)})


if __name__ == "__main__":
    main()
