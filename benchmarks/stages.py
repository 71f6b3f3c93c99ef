"""The time of each stage of a load, of one query, of a batch of queries and of all pairs.

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
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

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
from textsim_db.db import stored_corpus
from textsim_db.db.dictionary import Dictionary
from textsim_db.db.word_cache import WordCache
from textsim_db.read import candidates, search
from textsim_db.read.stored_documents import StoredDocuments
from textsim_db.write import (
    band_rows,
    deferred_index,
    load_batches,
    prepare_batches,
    retry_batch,
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
    (retry_batch, "transaction", "send, and wait for the server"),
]
"""The owner and the name of each function of a load, and its stage."""

QUERY: list[tuple[Any, str, str]] = [
    (search, "sketch", "normal form, words, signature, buckets"),
    (search, "find_candidates", "lend a connection"),
    (candidates, "read_candidates", "send the statement, and read its rows"),
    (search, "rows_of_tokens", "words of the text as ids"),
    (StoredDocuments, "rows", "words of the candidates as ids"),
    (search, "values_of_pairs", "the exact check"),
    (StoredDocuments, "signatures", "signatures of the matches"),
    (search, "estimates", "estimates of the matches"),
]
"""The owner and the name of each function of a query, and its stage."""


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


def load(bench: Bench, texts: Texts) -> tuple[ts.Corpus, Table, Figures]:
    """Load the documents; return the corpus and the processor time of each stage."""
    corpus = bench.db.create_corpus("stages")
    stages = Stages(time.thread_time)
    at_end: list[float] = []

    def build_at_end(*args: Any) -> None:
        at_end.append(bench.server_seconds())
        stored_corpus.build_band_index(*args)

    with stages.wrapping(LOAD), patch.object(deferred_index, "build_band_index", build_at_end):
        spent = bench.spend(lambda: corpus.add_many(texts.documents()))
    end = bench.server_seconds() - at_end[0]
    count = spent.result.added
    rows = {stage: stages.seconds[stage] for _, _, stage in LOAD}
    rows["threads, memory and the rest of the client"] = spent.client - sum(rows.values())
    rows["the client together"] = spent.client
    rows["the server: COPY, words, indexes of the documents, log"] = spent.server - end
    rows["the server at the end: index of the band rows, VACUUM"] = end
    rows["the server together"] = spent.server
    microseconds = {stage: seconds * 1e6 / count for stage, seconds in rows.items()}
    header = ["load, processor time of a document", "us"]
    return corpus, _table(header, microseconds), microseconds


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


def by_process(corpus: ts.Corpus, bench: Bench, texts: list[str]) -> tuple[Table, Figures]:
    """Return the processor time of client and server for a batch of queries and for all pairs."""
    corpus.query_many(texts)
    batches = bench.spend(lambda: [corpus.query_many(texts) for _ in range(5)])
    pairs = bench.spend(lambda: sum(1 for _ in corpus.pairs()))
    each = 1e6 / (5 * len(texts))
    rows = [
        ["processor time", "client", "server"],
        ["query_many, us a query", shown(batches.client * each), shown(batches.server * each)],
        ["all pairs, s", shown(pairs.client), shown(pairs.server)],
    ]
    figures = {
        "query_many_client_us": batches.client * each,
        "query_many_server_us": batches.server * each,
        "pairs_client_s": pairs.client,
        "pairs_server_s": pairs.server,
    }
    return rows, figures


def _table(header: list[str], rows: Figures) -> Table:
    return [header, *([stage, shown(value)] for stage, value in rows.items())]


def main() -> None:
    """Measure the stages, and print their tables."""
    given = options(__doc__, documents=200_000, words=200).parse_args()
    with tempfile.TemporaryDirectory() as folder, fresh_database() as bench:
        texts = write_texts(Path(folder), documents(given.documents, given.words), given.documents)
        corpus, load_table, load_us = load(bench, texts)
        query_table, query_us = query(corpus, bench, texts.indexed)
        process_table, by_processes = by_process(corpus, bench, texts.indexed)
    figures = {"load_us": load_us, "query_us": query_us, **by_processes}
    tables = {
        "load_stages": load_table,
        "query_stages": query_table,
        "client_and_server": process_table,
    }
    publish(given.record, "stages", figures, tables)


if __name__ == "__main__":
    main()
