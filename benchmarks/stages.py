"""Where the time of a load, of one query, of a batch of queries and of all pairs goes, by stage.

    python -m benchmarks.stages [--documents 200000] [--words 200] [--record]

It wraps the functions of each stage. The time of a stage leaves out the stages inside of it. A stage of
a load is measured by the processor time of its thread, because several threads work at once. A stage of
a query is measured by the clock. EXPLAIN ANALYZE says how long the server executes the same statement.
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
from benchmarks.harness import Bench, Figures, Table, fresh_database, options, publish, shown
from textsim_db.db import stored_corpus
from textsim_db.db.binary_format import Array
from textsim_db.db.dictionary import Dictionary
from textsim_db.db.engine import autocommit
from textsim_db.db.word_cache import WordCache
from textsim_db.read import candidates, search, statements
from textsim_db.read.stored_documents import StoredDocuments
from textsim_db.sketch.sketch_texts import buckets
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
    (candidates, "read_candidates", "send the statement, wait, and read its rows"),
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
    """Return the median time of each stage of a query."""
    stages = Stages(time.perf_counter)
    whole: list[float] = []
    parts: defaultdict[str, list[float]] = defaultdict(list)
    for text in texts:
        corpus.query(text)
    with stages.wrapping(QUERY):
        for text in texts:
            stages.seconds.clear()
            with stages.measuring("the rest of the client"):
                corpus.query(text)
            whole.append(sum(stages.seconds.values()))
            for stage, seconds in stages.seconds.items():
                parts[stage].append(seconds)
    medians = {stage: statistics.median(seconds) * 1e6 for stage, seconds in parts.items()}
    order = [stage for _, _, stage in QUERY]
    place = order.index("send the statement, wait, and read its rows") + 1
    rows = {stage: medians[stage] for stage in order[:place]}
    rows["&emsp;of which the server executes"] = _executed(bench, corpus, texts) * 1e6
    rows |= {stage: medians[stage] for stage in [*order[place:], "the rest of the client"]}
    rows["together"] = statistics.median(whole) * 1e6
    return _table(["one query, median time", "us"], rows), rows


def _executed(bench: Bench, corpus: ts.Corpus, texts: list[str]) -> float:
    """Return the median seconds in which the server executes the statement of a query."""
    stored = stored_corpus.load(bench.db.engine, corpus.name)
    statement = stored.statement(statements.CANDIDATES_OF_ONE)
    explain = f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {statement}"
    seconds: list[float] = []
    with autocommit(bench.db.engine) as connection:
        for text in texts[:200]:
            parameters = [Array(buckets(text, stored.config))]
            ((plans,),) = connection.execute(explain, parameters, prepare=True).fetchall()
            seconds.append(plans[0]["Execution Time"] / 1000)
    return statistics.median(seconds)


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
