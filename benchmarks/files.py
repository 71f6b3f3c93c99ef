"""The near-duplicates of a file: `textsim dedupe` beside scripts around other libraries.

    python -m benchmarks.files [FILE.jsonl] [--documents 200000] [--other CHECKOUT] [--only NAME ...]

FILE has records with the members `id` and `text`; without one, generated documents are measured. Each
side is a process of its own that reads the file and writes the keys of the records that stay: of records
with a similarity of 0.8 or more, the first. The figures are the clock's and the processor's seconds of
the process with its children, but not of a server, its peak memory, the removed records, and of samples
the removed records that are like no kept one, and the kept ones that are like an earlier kept one.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import generate
from benchmarks.harness import Figures, in_turns, medians, options, publish, table_of
from benchmarks.peers import BANDS, HASHES, ROWS, THRESHOLD, batches, word_trigrams

SAMPLE = 500
LABELS = {
    "seconds": "seconds",
    "processor": "processor, s",
    "peak_mb": "peak, MB",
    "removed": "removed",
    "wrong": f"wrong, of {SAMPLE}",
    "missed": f"missed, of {SAMPLE}",
}
RUNNER = """
import resource, subprocess, sys, time
start = time.perf_counter()
status = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
seconds = time.perf_counter() - start
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(status, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
"""
"""Runs a side. The peak of a process counts the memory of its parent, so this one is small."""


def read(path: str) -> Iterator[tuple[str, str]]:
    """Yield the key and the text of each record."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            yield str(record["id"]), record["text"]


def kept_first(count: int, candidates: Iterable[tuple[int, Sequence[int]]], sets: Any) -> set[int]:
    """Return the documents that stay; candidates: those of each document; each is checked exactly."""
    removed: set[int] = set()
    for number, others in candidates:
        for other in others:
            if other < number and other not in removed and are_similar(sets, number, other):
                removed.add(number)
                break
    return set(range(count)) - removed


def are_similar(sets: Sequence[frozenset[int]], a: int, b: int) -> bool:
    """Say whether the exact similarity of two documents reaches the threshold."""
    shared = len(sets[a] & sets[b])
    return shared >= THRESHOLD * (len(sets[a]) + len(sets[b]) - shared) > 0


def rensa(path: str) -> Iterator[str]:
    """R-MinHash signatures, its LSH index, and an exact check of sets of hashed shingles."""
    from rensa import RMinHash, RMinHashLSH

    documents = list(read(path))
    lsh = RMinHashLSH(threshold=THRESHOLD, num_perm=HASHES, num_bands=BANDS)
    sets: list[frozenset[int]] = []
    signatures: list[Any] = []
    for batch in batches(documents):
        shingles = [word_trigrams(text) for _, text in batch]
        lsh.insert_matrix(RMinHash.digest_matrix_from_token_sets(shingles, HASHES, 1), len(sets))
        signatures += RMinHash.from_token_sets(shingles, HASHES, 1)
        sets += [frozenset(map(hash, each)) for each in shingles]
    found = enumerate(lsh.query_all(signatures))
    return (documents[i][0] for i in sorted(kept_first(len(sets), found, sets)))


def datasketch(path: str) -> Iterator[str]:
    """MinHash with xxhash, MinHashLSH, and the same exact check."""
    from datasketch import MinHash, MinHashLSH
    from xxhash import xxh32_intdigest

    lsh = MinHashLSH(num_perm=HASHES, params=(BANDS, ROWS))
    documents = list(read(path))
    sets: list[frozenset[int]] = []
    found: list[tuple[int, Sequence[int]]] = []
    for batch in batches(documents):
        shingles = [word_trigrams(text) for _, text in batch]
        for signature in MinHash.generator(shingles, num_perm=HASHES, hashfunc=xxh32_intdigest):
            found.append((len(found), lsh.query(signature)))
            lsh.insert(len(found) - 1, signature, check_duplication=False)
        sets += [frozenset(map(hash, each)) for each in shingles]
    return (documents[i][0] for i in sorted(kept_first(len(sets), found, sets)))


def duckdb(path: str) -> Iterator[str]:
    """Make hashed shingles, MinHash buckets and the exact overlap of candidates in SQL, in memory."""
    import duckdb as database

    connection = database.connect()
    connection.execute(
        f"""
        CREATE TABLE d AS SELECT (row_number() OVER ())::int - 1 AS n, id,
            string_split_regex(trim(lower(text)), '\\s+') AS w
        FROM read_json('{path}', format = 'newline_delimited',
            columns = {{id: 'VARCHAR', text: 'VARCHAR'}});
        CREATE TABLE s AS SELECT n,
            list_distinct([hash(w[i], w[i + 1], w[i + 2]) for i in range(1, len(w) - 1)]) AS h FROM d;
        CREATE TABLE b AS SELECT n,
            hash(j, [list_min([hash(x, j * {ROWS} + k) for x in h]) for k in range({ROWS})]) AS bucket
        FROM s, range({BANDS}) r (j);
        """
    )
    found = connection.execute(
        f"""
        WITH c AS (
                SELECT DISTINCT x.n AS a, y.n AS b
                FROM b x JOIN b y ON x.bucket = y.bucket AND x.n < y.n),
            o AS (
                SELECT a, b, len(list_intersect(x.h, y.h)) AS i, len(x.h) + len(y.h) AS t
                FROM c JOIN s x ON x.n = a JOIN s y ON y.n = b)
        SELECT b, a FROM o WHERE i >= {THRESHOLD} * (t - i) ORDER BY b, a
        """
    ).fetchall()
    removed: set[int] = set()
    for later, earlier in found:
        if earlier not in removed:
            removed.add(later)
    ids = connection.execute("SELECT n, id FROM d ORDER BY n").fetchall()
    return (name for number, name in ids if number not in removed)


SCRIPTS: dict[str, Callable[[str], Iterator[str]]] = {
    "rensa, exact check": rensa,
    "datasketch, exact check": datasketch,
    "DuckDB in memory": duckdb,
}


def measured(words: list[str], path: str, output: str, round_: int, folder: str) -> Figures:
    """Run a side; its output has the records, or the keys, that stay."""
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, *words], cwd=folder, stdout=subprocess.PIPE, check=True
    )
    status, seconds, processor, peak = done.stdout.split()
    assert int(status) == 0, words
    figures: Figures = dict(zip(LABELS, map(float, (seconds, processor, peak)), strict=False))
    if round_ == 0:
        lines = Path(output).read_text(encoding="utf-8").splitlines()
        kept = {str(json.loads(line)["id"]) if line[0] == "{" else line for line in lines}
        figures |= faults(path, kept)
        return figures
    return figures


def faults(path: str, kept: set[str]) -> Figures:
    """Return what a result has wrong in samples, by comparing them with all kept records."""
    keys = [key for key, _ in read(path)]
    choose = random.Random(1).sample
    removed = [key for key in keys if key not in kept]
    stays = [key for key in keys if key in kept]
    sampled = {*choose(removed, min(SAMPLE, len(removed))), *choose(stays, min(SAMPLE, len(stays)))}
    shingles = {key: set(word_trigrams(text)) for key, text in read(path) if key in sampled}
    owners: dict[bytes, list[str]] = {}
    for key, members in shingles.items():
        for shingle in members:
            owners.setdefault(shingle, []).append(key)
    explained: set[str] = set()
    passed: set[str] = set()
    for key, text in read(path):
        if key in kept:
            members = set(word_trigrams(text))
            shared = Counter(owner for each in members for owner in owners.get(each, ()))
            for owner, count in shared.items():
                is_like = count >= THRESHOLD * (len(members) + len(shingles[owner]) - count)
                if is_like and (owner not in kept or owner not in passed) and owner != key:
                    explained.add(owner)
        passed.add(key)
    return {
        "removed": len(removed),
        "wrong": len({key for key in sampled if key not in kept} - explained),
        "missed": len({key for key in sampled if key in kept} & explained),
    }


def main() -> None:
    """Measure each side, or run one of them."""
    if sys.argv[1] == "--run":
        _, _, name, path, output = sys.argv
        Path(output).write_text("\n".join(SCRIPTS[name](path)), encoding="utf-8")
        return
    parser = options(__doc__, documents=200_000, words=200, rounds=3)
    parser.add_argument("file", nargs="?", help="a file of records")
    parser.add_argument("--other", help="the folder of another checkout, with its .venv")
    parser.add_argument("--only", nargs="*", help="measure these sides only")
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        path = str(Path(given.file).resolve()) if given.file else f"{folder}/documents.jsonl"
        if not given.file:
            documents = generate.documents(given.documents, given.words)
            lines = (json.dumps({"id": key, "text": text}) for key, text in documents)
            Path(path).write_text("\n".join(lines), encoding="utf-8")
        output = f"{folder}/kept.jsonl"
        dedupe = ["-m", "textsim_db.cli", "dedupe", path, "-o", output]
        commands = {"textsim-db": ([sys.executable, *dedupe], os.getcwd())}
        if given.other:
            other = str(Path(given.other).resolve())
            commands["other"] = ([f"{other}/.venv/bin/python", *dedupe], other)
        for name in SCRIPTS:
            words = [sys.executable, "-m", "benchmarks.files", "--run", name, path, output]
            commands[name] = (words, os.getcwd())
        sides = {
            name: partial(
                lambda round_, words, place: measured(words, path, output, round_, place),
                words=words,
                place=place,
            )
            for name, (words, place) in commands.items()
            if given.only is None or name in given.only
        }
        rounds = in_turns(sides, given.rounds)
    figures = {
        name: results[0] | medians([{k: r[k] for k in list(LABELS)[:3]} for r in results])
        for name, results in rounds.items()
    }
    publish(given.record, "files", figures, {"files": table_of(figures, LABELS, "")})


if __name__ == "__main__":
    main()
