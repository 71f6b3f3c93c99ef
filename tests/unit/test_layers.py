"""Who may import whom, and kernels that stay inside their arrays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"

KERNELS = """
import random, sys
from tests.unit.test_text import random_text
from textsim_db import measures, recipe, similarity
from textsim_db.config import make_config
from textsim_db.counting import sums_of_pairs
from textsim_db.stop_words import without
from textsim_db.tally import Tally
from textsim_db.text import to_bytes
from textsim_db.unicode_tables import tables
import numpy as np

rng = random.Random(sys.argv[1])
fixed = ["", " ", "a", "a" * 5000, "\\u023a" * 3000, "漢" * 3000, "漢a" * 1000, "\\ufdfa" * 200,
         "\\U0001f98a" * 500, "x " * 4000, "\\U00010400" * 700, "\\u0130" * 900, "a\\u0301" * 400]
for shingle in ("word:1", "word:3", "char:1", "char:5", "char:1000"):
    config = make_config(shingle, num_hashes=32)
    for size in (0, 1, 2, 50):
        for last in fixed:
            texts = [random_text(rng) for _ in range(size)] + [last]
            rng.shuffle(texts)
            made = recipe.sketch([to_bytes(text) for text in texts], config)
            tokens = np.arange(made.tokens.word_offsets[-1], dtype=np.int32) % 7
            count = len(texts)
            similarity.jaccard_pairs(
                tokens, made.tokens.word_offsets, np.full(count, 10**6),
                np.repeat(np.arange(count), count), np.tile(np.arange(count), count), 3,
            )
            sums_of_pairs(
                tokens, made.tokens.word_offsets,
                np.repeat(np.arange(count), count), np.tile(np.arange(count), count),
            )
            Tally().add(tokens - 3, made.tokens.word_offsets)
            for words in (("a",), ("a", "x", "漢"), tuple(sorted({"", "zz", *texts[0].split()}))):
                without(made.tokens, words)
    recipe.sketch([], config)
for size in (0, 1, 7, 40):
    a, b = rng.choices(range(5), k=size), rng.choices(range(5), k=rng.randrange(40))
    measures.alignment(a, b, 1, 2, 2), measures.edit_table(a, b), measures.levenshtein(a, b, 0.5)
print("done")
"""


def test_import_contracts() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LINT, "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default"},
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_kernels_with_checked_bounds(seed: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KERNELS, str(seed)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)},
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), f"--seed {seed}: {done.stderr}"
