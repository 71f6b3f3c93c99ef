"""The time of each stage of a load, a query, matches() in SQL, a batch of queries and all pairs.

    python -m benchmarks.stages [--documents 200000] [--words 200] [--record]

It wraps the functions of each stage. The time of a stage leaves out the stages inside of it. Stages of
the client take processor time of their threads: threads work at once, and other work of the machine
changes the time by the clock. Wrapping takes some 3 us a stage, and most of it counts for the rest.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil

import textsim_db as ts
from benchmarks.corpus_steps import Texts, write_texts
from benchmarks.generate import documents
from benchmarks.harness import (
    Bench,
    Figures,
    Table,
    fresh_database,
    milliseconds,
    options,
    publish,
    shown,
)
from textsim_db.cluster import join
from textsim_db.db.dictionary import Dictionary
from textsim_db.read import bucket_pairs, find_candidates, search
from textsim_db.read.bucket_pairs import BucketScan
from textsim_db.read.document_cache import CopyFinder, DocumentCache
from textsim_db.read.stored_documents import StoredDocuments
from textsim_db.text.word_cache import WordCache
from textsim_db.write import (
    band_rows,
    load_batches,
    prepare_batches,
    write_batch,
)

Function = Callable[..., Any]

LOAD: list[tuple[Any, str, str]] = [
    (load_batches, "in_batches", "read the documents, and cut them into batches"),
    (load_batches, "prepare", "check and encode"),
    (prepare_batches, "tokenize_joined", "normal form, words and their hashes"),
    (prepare_batches, "sketch_tokens", "shingles, signatures, buckets"),
    (WordCache, "find", "look up words in the cache"),
    (Dictionary, "ensure", "look up or add other words in the dictionary"),
    (write_batch, "copy_documents", "rows of documents for COPY"),
    (write_batch, "band_rows", "sort the band rows"),
    (band_rows, "copy_bands", "band rows for COPY"),
    (load_batches, "transaction", "send, and wait for the server"),
]
"""The owner and the name of each function of a load, and its stage."""

PHASES = (
    "the first batch, with most of the words",
    "the batches are written",
    "index of the band rows, VACUUM",
)
"""The phases of a load into an empty database, in their order."""

QUERY: list[tuple[Any, str, str]] = [
    (search, "sketch", "normal form, words, signature, buckets"),
    (search, "find_candidates", "lend a connection"),
    (find_candidates, "read_candidates", "send the statement, and read its rows"),
    (search, "rows_of_tokens", "words of the text as ids"),
    (StoredDocuments, "rows", "words of the candidates as ids"),
    (search, "values_of_pairs", "the exact check"),
]
"""The owner and the name of each function of a query, and its stage."""

ALL_PAIRS: list[tuple[Any, str, str]] = [
    (BucketScan, "rows", "read the band index"),
    (bucket_pairs, "grouped", "find the buckets of several documents"),
    (CopyFinder, "fold", "fold copies"),
    (bucket_pairs, "lists", "list the pairs of these buckets"),
    (DocumentCache, "documents", "read the documents of the pairs"),
    (StoredDocuments, "rows", "words of the documents as ids"),
    (join, "values_of_pairs", "the exact check"),
    (DocumentCache, "keys", "keys of the matches"),
]
"""The owner and the name of each function that all pairs call, and its stage."""

MATCHES = {
    "normal form": "textsim.normal_form(body)",
    "values of the shingles": "textsim._shingle_values(form, 'word', 3)",
    "signature": "textsim._sketch(shingle_values, 128, 1)",
    "buckets": "textsim._buckets(signature, 18, 7)",
    "candidates, looked up by buckets": "(SELECT count(c) FROM textsim._candidates_{id}("
    "buckets, NULL, NULL, 0.8, NULL, NULL, NULL, form) c)",
    "words of the text as ids, looked up in the dictionary": "textsim._word_numbers_{id}(form)",
    "number of distinct shingles": "textsim._count_shingles(form, shingle_values, 'word', 3)",
    "the exact check": "textsim._count_shared_triples(word_ids, word_ids, 3)",
}
"""The stages of matches() with one candidate, and the call that each of them is."""
PREPARED = """
CREATE TEMP TABLE prepared AS
SELECT body, form, shingle_values, signature, textsim._buckets(signature, 18, 7) AS buckets,
    textsim._word_numbers_{id}(form) AS word_ids
FROM (SELECT *, textsim._sketch(shingle_values, 128, base) AS signature
    FROM (SELECT *, textsim._shingle_values(form, 'word', 3) AS shingle_values
        FROM (SELECT body, textsim.normal_form(body) AS form, base
            FROM unnest(%s::text[]) body, (SELECT base FROM textsim.corpus WHERE name = %s) c) f) v) s
"""


class Stages:
    """The seconds of each stage, without the stages inside of it, of all threads."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._clock = clock
        self._threads = threading.local()
        self._lock = threading.Lock()

    @contextmanager
    def wrapping(self, functions: Iterable[tuple[Any, str, str]]) -> Iterator[None]:
        """Measure functions, given as owner, name and stage, meanwhile."""
        with ExitStack() as stack:
            for owner, name, stage in functions:
                function = getattr(owner, name)
                setattr(owner, name, self._measured(function, stage))
                stack.callback(setattr, owner, name, function)
            yield

    @contextmanager
    def measuring(self, stage: str) -> Iterator[None]:
        """Measure a stage."""
        if not hasattr(self._threads, "inner"):
            self._threads.inner = []
        inner: list[float] = self._threads.inner
        inner.append(0.0)
        start = self._clock()
        try:
            yield
        finally:
            spent = self._clock() - start
            with self._lock:
                self.seconds[stage] += spent - inner.pop()
            if inner:
                inner[-1] += spent

    def _measured(self, function: Function, stage: str) -> Function:
        def measured(*args: Any, **kwargs: Any) -> Any:
            with self.measuring(stage):
                result = function(*args, **kwargs)
            if isinstance(result, Iterator):
                return self._items(result, stage)
            return self._context(result, stage) if hasattr(result, "__enter__") else result

        return measured

    def _items(self, items: Iterator[Any], stage: str) -> Iterator[Any]:
        while True:
            with self.measuring(stage):
                item = next(items, self)
            if item is self:
                return
            yield item

    @contextmanager
    def _context(self, context: Any, stage: str) -> Iterator[Any]:
        with self.measuring(stage), context as value:
            yield value


class Phases:
    """The phases of a load, one after another: each begins when a function is called first."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._begun: dict[str, tuple[float, float]] = {}

    def begin(self, phase: str) -> None:
        """Begin a phase, unless it has begun already."""
        if phase not in self._begun:
            self._begun[phase] = time.process_time(), self._bench.server_seconds()

    def beginning_with(self, owner: Any, name: str, phase: str) -> AbstractContextManager[Any]:
        """Let a function begin a phase meanwhile."""
        function = getattr(owner, name)

        def begins(*args: Any, **kwargs: Any) -> Any:
            self.begin(phase)
            return function(*args, **kwargs)

        return patch.object(owner, name, begins)

    def seconds(self) -> dict[str, tuple[float, float]]:
        """Return the processor time of client and server in each phase but the last."""
        times = pairwise(self._begun.items())
        return {phase: (end[0] - begin[0], end[1] - begin[1]) for (phase, begin), (_, end) in times}


def load(bench: Bench, texts: Texts) -> tuple[ts.Corpus, dict[str, Table], Figures]:
    """Load the documents; return the corpus, and the time of each phase and of each stage."""
    corpus = bench.db.create_corpus("stages")
    stages = Stages(time.thread_time)
    phases = Phases(bench)
    with (
        stages.wrapping(LOAD),
        phases.beginning_with(load_batches, "write_or_retry", PHASES[1]),
        phases.beginning_with(load_batches, "build_band_index", PHASES[2]),
    ):
        phases.begin(PHASES[0])
        spent = bench.spend(lambda: corpus.add_many(texts.documents()))
        phases.begin("")
    seconds = phases.seconds()
    end = seconds[PHASES[2]][1]
    count = spent.result.added
    rows = {stage: stages.seconds[stage] for _, _, stage in LOAD}
    rows["threads, memory and the rest of the client"] = spent.client - sum(rows.values())
    rows["the client together"] = spent.client
    rows["the server: COPY, words, indexes of the documents, log"] = spent.server - end
    rows["the server at the end: index of the band rows, VACUUM"] = end
    rows["the server together"] = spent.server
    microseconds = {stage: seconds * 1e6 / count for stage, seconds in rows.items()}
    header = ["load, processor time of a document", "us"]
    by_phase = [["a load, processor time of its phases", "client, s", "server, s"]]
    by_phase += [[phase, *map(shown, spans)] for phase, spans in seconds.items()]
    tables = {"load_phases": by_phase, "load_stages": _table(header, microseconds)}
    return corpus, tables, microseconds


def query(corpus: ts.Corpus, bench: Bench, texts: list[str]) -> tuple[Table, Figures]:
    """Return the mean processor time of each stage of a query."""
    stages = Stages(time.thread_time)
    times: list[float] = []

    def ask() -> None:
        for text in texts:
            with stages.measuring("the rest of the client"):
                times.append(milliseconds(corpus.query, text) * 1000)

    ask()
    times.clear()
    stages.seconds.clear()
    with stages.wrapping(QUERY):
        spent = bench.spend(ask)
    order = [*(stage for _, _, stage in QUERY), "the rest of the client"]
    rows = {stage: stages.seconds[stage] * 1e6 / len(texts) for stage in order}
    rows["the client together"] = sum(rows.values())
    rows["the server"] = spent.server * 1e6 / len(texts)
    rows["by the clock, the fastest tenth"] = statistics.quantiles(times, n=10)[0]
    return _table(["one query, processor time", "us"], rows), rows


def matches(corpus: ts.Corpus, bench: Bench, texts: list[str]) -> tuple[Table, Figures]:
    """Return the processor time that the server takes for each stage of a search in SQL."""
    execute = bench.connection.execute
    session = psutil.Process(bench.connection.info.backend_pid)
    number = bench.relation("document", corpus.name).rpartition("_")[2]
    execute(PREPARED.format(id=number).encode(), [texts, corpus.name])

    def microseconds(ask: Callable[[], object]) -> float:
        times = []
        ask()
        for _ in range(3):
            before = sum(session.cpu_times()[:2])
            ask()
            times.append((sum(session.cpu_times()[:2]) - before) * 1e6 / len(texts))
        return statistics.median(times)

    def ask_each() -> None:
        for text in texts:
            call = "SELECT key, similarity FROM textsim.matches(%s, %s)"
            execute(call, [corpus.name, text], prepare=True).fetchall()

    rows = {}
    for stage, call in MATCHES.items():
        statement = f"SELECT count({call.format(id=number)}) FROM prepared".encode()
        rows[stage] = microseconds(partial(execute, statement))
    together = microseconds(ask_each)
    rows["functions, statements and the rest"] = together - sum(rows.values())
    rows["the server together"] = together
    return _table(["matches() with a match, processor time", "us"], rows), rows


def query_many(corpus: ts.Corpus, bench: Bench, texts: list[str]) -> tuple[Table, Figures]:
    """Return the processor time of client and server for a query in a batch."""
    corpus.query_many(texts)
    spent = bench.spend(lambda: [corpus.query_many(texts) for _ in range(5)])
    each = 1e6 / (5 * len(texts))
    rows = {"the client": spent.client * each, "the server": spent.server * each}
    return _table(["a query in a batch, processor time", "us"], rows), rows


def all_pairs(corpus: ts.Corpus, bench: Bench) -> tuple[Table, Figures]:
    """Return the processor time of each stage of all pairs."""
    stages = Stages(time.thread_time)

    def read() -> None:
        with stages.measuring("the rest of the client"):
            for _ in corpus.pairs():
                pass

    read()
    stages.seconds.clear()
    with stages.wrapping(ALL_PAIRS):
        spent = bench.spend(read)
    order = [*(stage for _, _, stage in ALL_PAIRS), "the rest of the client"]
    rows = {stage: stages.seconds[stage] * 1000 for stage in order}
    rows["the client together"] = spent.client * 1000
    rows["the server"] = spent.server * 1000
    return _table(["all pairs, processor time", "ms"], rows), rows


def _table(header: list[str], rows: Figures) -> Table:
    return [header, *([stage, shown(value)] for stage, value in rows.items())]


def main() -> None:
    """Measure the stages, and print their tables."""
    given = options(__doc__, documents=200_000, words=200).parse_args()
    with tempfile.TemporaryDirectory() as folder, fresh_database() as bench:
        texts = write_texts(Path(folder), documents(given.documents, given.words), given.documents)
        corpus, load_tables, load_us = load(bench, texts)
        query_table, query_us = query(corpus, bench, texts.indexed)
        matches_table, matches_us = matches(corpus, bench, texts.indexed)
        batch_table, batch_us = query_many(corpus, bench, texts.indexed)
        pairs_table, pairs_ms = all_pairs(corpus, bench)
    figures = {
        "load_us": load_us,
        "query_us": query_us,
        "matches_us": matches_us,
        "query_many_us": batch_us,
        "all_pairs_ms": pairs_ms,
    }
    tables = {
        **load_tables,
        "query_stages": query_table,
        "matches_stages": matches_table,
        "query_many_stages": batch_table,
        "all_pairs_stages": pairs_table,
    }
    publish(given.record, "stages", figures, tables)


if __name__ == "__main__":
    main()
