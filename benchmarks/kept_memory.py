"""A load that keeps its freed memory beside a load that returns it, as the C library of Linux does.

    python -m benchmarks.kept_memory [--documents 20000] [--words 200] [--rounds 5] [--record]

Set up: two processes with a corpus each. Measured, in turns: the processor time of the client for a load
of the same documents, the part of the system in it, and the peak memory. The first load of each process
is left out, because it adds the words to the dictionary.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import textsim_db as ts
from benchmarks.corpus_steps import Texts, read_texts, write_texts
from benchmarks.generate import documents
from benchmarks.harness import (
    Bench,
    Figures,
    compare,
    forget_peak,
    in_turns,
    medians,
    peak_mb,
)
from textsim_db.cli.memory import keep_freed_memory

WAYS = {"returned": "memory returned", "kept": "memory kept, as by the commands"}
LABELS = {
    "client_us": "client, processor us a document",
    "system_us": "&emsp;of it in the system",
    "peak_mb": "client, peak MB",
}


def load(corpus: ts.Corpus, texts: Texts) -> Figures:
    """Load the documents, and return what the client spent."""
    forget_peak()
    before = os.times()
    count = corpus.add_many(texts.documents()).added
    after = os.times()
    system = (after.system - before.system) * 1e6 / count
    user = (after.user - before.user) * 1e6 / count
    return {"client_us": user + system, "system_us": system, "peak_mb": peak_mb()}


def serve(url: str, way: str, folder: Path, pipe: Connection) -> None:
    """Load the documents into a new corpus for each request of the pipe."""
    if way == "kept":
        assert keep_freed_memory()
    texts = read_texts(folder)
    with ts.connect(url) as db:
        while pipe.recv():
            corpus = db.create_corpus(way)
            pipe.send(load(corpus, texts))
            corpus.drop()


def start(stack: ExitStack, url: str, way: str, folder: Path) -> Callable[[int], Figures]:
    """Start a process, and return a function that lets it load."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(url, way, folder, theirs))
    process.start()
    stack.callback(process.join)
    stack.callback(ours.send, False)

    def ask(_: int) -> Figures:
        ours.send(True)
        figures: Figures = ours.recv()
        return figures

    return ask


def measure(bench: Bench, count: int, words: int, rounds: int) -> dict[str, Figures]:
    """Return the figures of both ways, which take turns."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        write_texts(folder, documents(count, words), count)
        sides = {WAYS[way]: start(stack, bench.db.url, way, folder) for way in WAYS}
        in_turns(sides, 1)
        return {way: medians(of_way) for way, of_way in in_turns(sides, rounds).items()}


if __name__ == "__main__":
    corner = "{documents:,} documents of {words} words"
    compare("kept_memory", __doc__, measure, LABELS, corner, documents=20_000, words=200, rounds=5)
