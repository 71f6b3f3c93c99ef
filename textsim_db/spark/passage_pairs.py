"""The passages that documents of a DataFrame share, for all pairs: those of Corpus.shared_passages().

The stages:

    rows -> fingerprints, packed into messages to partitions -> pairs of documents with an equal one
         -> the texts of both (two joins) -> their shared runs
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from textsim_db.compare.pair_values import code_points
from textsim_db.compare.shared_runs import shared_runs
from textsim_db.errors import suggest_settings
from textsim_db.settings.check_values import check_count
from textsim_db.settings.corpus_settings import CorpusConfig, CorpusSettings
from textsim_db.sketch.ragged import Ragged, in_parts, numbered
from textsim_db.sketch.sketch_texts import tokens_without
from textsim_db.spark.columns import FrameColumns, accept
from textsim_db.spark.packed_rows import (
    SCHEMA,
    Entries,
    from_arrow,
    joined,
    unpack_entries,
)
from textsim_db.spark.pair_frames import check_keys, checked_partitions
from textsim_db.spark.stage_1_buckets import ENTRIES_AT_ONCE, Outbox, sketch_accepted, with_common
from textsim_db.spark.stage_2_edges import pairs_of_buckets, sort_by_kind
from textsim_db.text.stop_words import with_lists
from textsim_db.text.word_places import word_numbers

PASSAGE_COLUMNS = "a string, b string, words int, in_a int, in_b int"
_ARROW = pa.schema(
    [
        *((name, pa.string()) for name in ("a", "b")),
        *((name, pa.int32()) for name in ("words", "in_a", "in_b")),
    ]
)
_SETTINGS = ("shingle", "stop_words", "common_passages")


@suggest_settings(*_SETTINGS)
def shared_passages(
    df: DataFrame,
    key: str = "id",
    text: str = "text",
    scope: str | None = None,
    passages: int = 13,
    min_words: int | None = None,
    partitions: int | None = None,
    **settings: Any,
) -> DataFrame:
    """Return the runs of words that documents share, for all pairs: (a, b, words, in_a, in_b), a < b.

    The rows are those of Corpus.shared_passages() if the corpus got the documents in the order of their
    keys, and has learned from the same sample which runs are in very many documents. Rows that
    find_candidates() refuses share nothing. A text is sent to the task of each of its pairs, so the work
    grows with the square of the documents that share a run.

    Args:
        df: a DataFrame with one row for each document. It is read several times; each time it must have
            the same rows.
        key: the column with the keys: strings or integers, which are unique.
        text: the column with the texts.
        scope: the column with the scopes: documents of different scopes are not compared.
        passages: the words of the shortest run that is found for certain, as in a corpus; characters if
            the shingles are characters.
        min_words: the words of the shortest passage; by default `passages`, and not fewer.
        partitions: the partitions of the fingerprints, as in find_candidates().
        settings: the settings of a corpus: shingle, stop_words, common_passages.

    Raises:
        ConfigurationError: a setting or a column is not possible, or two rows have the same key.
    """
    columns = FrameColumns(key, text, scope)
    chosen = CorpusSettings(**settings, passages=passages, scoped=scope is not None)
    config = with_lists(chosen).complete()
    least = (
        passages if min_words is None else check_count(min_words, "min_words", passages, 2**31 - 1)
    )
    columns.check(df)
    partitions = checked_partitions(df, partitions)
    documents = columns.numbered(df)
    check_keys(documents.dropna(subset=["key", "text"]), columns.key)
    config = with_common(documents, config)
    pairs = (
        documents.mapInArrow(lambda batches: send_fingerprints(batches, config, partitions), SCHEMA)
        .repartitionById(partitions, "partition")
        .mapInArrow(find_pairs, "left_number long, right_number long")
        .distinct()
    )
    for side in ("left", "right"):
        names = [f"{side}_{name}" for name in ("number", "key", "text", "scope")]
        of_side = documents.select("number", "key", "text", "scope").toDF(*names)
        pairs = pairs.join(of_side, names[0])
    return (
        pairs.where("left_scope <=> right_scope")  # by chance, fingerprints of two scopes are equal
        .select("left_key", "left_text", "right_key", "right_text")
        .mapInArrow(lambda batches: compare_pairs(batches, config, least), PASSAGE_COLUMNS)
    )


def send_fingerprints(
    batches: Iterator[pa.RecordBatch], config: CorpusConfig, partitions: int
) -> Iterator[pa.RecordBatch]:
    """Yield messages with the fingerprints of documents: rows (key, text, scope, number)."""
    outbox = Outbox(partitions)
    for batch in batches:
        accepted = accept(batch, config.scoped)
        numbers = batch.column(3).to_numpy()[accepted.places]
        for sketches, chosen in sketch_accepted(accepted, config, outbox):
            assert sketches.fingerprints is not None
            fingerprints = in_parts(sketches.fingerprints, sketches.parts)
            wide = fingerprints.values.astype(np.uint32).astype(np.uint64) << np.uint64(16)
            owners = numbers[chosen][fingerprints.owners()]
            outbox.add(Entries(wide, owners), np.empty(0, np.int64))
            if outbox.count > ENTRIES_AT_ONCE:
                yield outbox.flush()
    yield outbox.flush()


def find_pairs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the pairs of documents that share a fingerprint of a partition: (left, right)."""
    inbox = sort_by_kind(from_arrow(batches))
    shared = pairs_of_buckets(joined([unpack_entries(data) for data in inbox.get("entries", [])]))
    columns = [pa.array(shared.left), pa.array(shared.right)]
    yield pa.RecordBatch.from_arrays(columns, ["left_number", "right_number"])


def compare_pairs(
    batches: Iterator[pa.RecordBatch], config: CorpusConfig, min_words: int
) -> Iterator[pa.RecordBatch]:
    """Yield the shared runs of rows (key and text, other key and text), as rows of PASSAGE_COLUMNS."""
    for batch in batches:
        keys, texts, other_keys, other_texts = (column.to_pylist() for column in batch.columns)
        documents, others = zip(keys, texts, strict=True), zip(other_keys, other_texts, strict=True)
        pairs = [
            sorted(pair, key=lambda document: document[0].encode())
            for pair in zip(documents, others, strict=True)
        ]
        rows = [
            dict(zip(_ARROW.names, run, strict=True)) for run in _runs(pairs, config, min_words)
        ]
        yield pa.RecordBatch.from_pylist(rows, _ARROW)


def _runs(
    pairs: Sequence[Sequence[tuple[str, str]]], config: CorpusConfig, min_words: int
) -> Iterator[tuple[str, str, int, int, int]]:
    """Yield the shared runs of pairs of documents, each a key and a text."""
    numbers, documents = numbered([document for pair in pairs for document in pair])
    if not documents:
        return
    tokens = tokens_without([text.encode() for _, text in documents], config)
    if config.shingle.unit == "char":
        units = Ragged(*code_points(tokens.forms()))
    else:
        units = Ragged(word_numbers(tokens), tokens.word_offsets)
    first, second = numbers.reshape(-1, 2).T
    order = np.argsort(first, kind="stable")
    starts = np.flatnonzero(np.diff(first[order], prepend=-1))
    for start, end in pairwise([*starts.tolist(), len(order)]):
        others = second[order[start:end]]
        a, of_others = int(first[order[start]]), units.take(others)
        runs = shared_runs(units.of(a), of_others.values, of_others.offsets, min_words)
        for other, *run in zip(*(column.tolist() for column in runs), strict=True):
            yield (documents[a][0], documents[others[other]][0], *run)
