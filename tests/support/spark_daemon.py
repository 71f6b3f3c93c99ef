"""PySpark's daemon, which has imported what tasks import when it forks a worker."""

from __future__ import annotations

import gc

import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

from textsim_db.spark import pair_frames, passage_pairs, read_corpus, write_corpus  # noqa: F401

if __name__ == "__main__":
    # A worker collects garbage after each task, and would visit the objects of all modules.
    gc.collect()
    gc.freeze()
    manager()
