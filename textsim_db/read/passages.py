"""Passages: a text in, the runs of words or characters that it shares with documents out.

The stages:

    text -> fingerprints -> documents that share one (a join with the index of the fingerprints)
         -> words as numbers -> shared runs -> passages, the longest first
"""

from __future__ import annotations

import shlex
from collections.abc import Generator, Iterable, Iterator, Sequence

import numpy as np

from textsim_db.check_values import check_count
from textsim_db.cluster.spanning_forest import Ids
from textsim_db.compare.shared_runs import shared_runs
from textsim_db.db.binary_format import load_int4_array
from textsim_db.db.engine import Connection, autocommit
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import ConfigurationError, DocumentError
from textsim_db.read import statements
from textsim_db.read.boilerplate import SAMPLE_DOCUMENTS
from textsim_db.read.candidates import (
    CandidateRows,
    LookUp,
    find_candidates,
    passage_look_up,
    read_candidates,
    without_common,
)
from textsim_db.read.document_cache import DocumentCache
from textsim_db.read.search import form_of_row, row_of_key
from textsim_db.read.snapshot import snapshot
from textsim_db.read.stored_documents import StoredDocuments, WordNumbers, rows_of_tokens
from textsim_db.results import CommonRun, Contamination, Passage, PassageList, SharedPassage
from textsim_db.settings import CorpusConfig
from textsim_db.show.numbers import count
from textsim_db.sketch.fingerprints import (
    LEFT_OUT,
    classes_of,
    count_units,
    passage_values,
)
from textsim_db.sketch.passage_window import window_of
from textsim_db.sketch.ragged import Ragged
from textsim_db.sketch.scopes import Scopes, in_scopes
from textsim_db.sketch.sketch_texts import Sketches, places_of_units, sketch, sketch_tokens
from textsim_db.text.array_types import Int32Array, Int64Array
from textsim_db.text.storable_text import to_bytes
from textsim_db.text.tokens import tokens_of


def least_words(store: Store, min_words: int | None) -> int:
    """Return the words of the shortest passage of a search, by default the passages of the corpus.

    Raises ConfigurationError if the corpus has no passages, or only longer ones.
    """
    least, name = store.corpus.config.passages, store.corpus.name
    if least is None:
        raise ConfigurationError(
            f'corpus "{name}" has no passages; rebuild it with passages, such as: '
            f"textsim rebuild {shlex.quote(name)} --passages 13"
        )
    return least if min_words is None else check_count(min_words, "min_words", least, 2**31 - 1)


def passages(
    store: Store, text: str, min_words: int | None, max_documents: int | None, scope: str | None
) -> PassageList:
    """Return the passages of a text of at least min_words words, the longest first.

    max_documents: the documents of a fingerprint that more documents have are not read, and the runs of
    the text with such fingerprints are returned beside the passages; None reads all. The runs without
    fingerprints are returned too.
    """
    least = least_words(store, min_words)
    sketches = sketch([to_bytes(text)], store.corpus.config)
    scopes = None if scope is None else [scope]
    look_up = passage_look_up(sketches, scopes)
    values = passage_values(sketches.tokens, store.corpus.config)
    common = list(_runs_without_fingerprints(store, values))
    if max_documents is not None:
        look_up, fingerprints = without_common(store, look_up, max_documents)
        common += _runs_with(store, values, fingerprints, scopes)
    verified = _passages(store, sketches, look_up, least)
    return PassageList(_with_characters(verified, text, store.corpus.config), common)


def _with_characters(verified: list[Passage], text: str, config: CorpusConfig) -> list[Passage]:
    """Return passages with their characters in the text."""
    if not verified:
        return verified
    places = places_of_units(text, config)
    spans = (places.span(each.in_text, each.words) for each in verified)
    return [
        each._replace(start=start, end=end)
        for each, (start, end) in zip(verified, spans, strict=True)
    ]


def characters(store: Store, text: str, passage: Passage) -> tuple[int, int]:
    """Return the characters of a document before a passage, and up to its end; text: the document's."""
    config = store.corpus.config
    places = places_of_units(text, config)
    end, units = passage.in_document + passage.words, len(places.starts)
    if end > units:
        noun = "word" if config.shingle.unit == "word" else "character"
        raise DocumentError(
            f'the text of document "{passage.key}" has {count(units, noun)}; the passage ends after '
            f"{end:,}, so this is another text"
        )
    return places.span(passage.in_document, passage.words)


def _runs_without_fingerprints(store: Store, values: Int64Array) -> Iterator[CommonRun]:
    """Yield the runs of one text whose windows choose no shingle, given all its shingle values."""
    config = store.corpus.config
    classes = classes_of(values, config)
    places = np.flatnonzero(classes >= LEFT_OUT)
    if not len(places):
        return
    n, width = window_of(config.passages or 0)
    for run in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1):
        if len(run) >= width:
            documents = _estimate_documents(store, int(classes[run].min()))
            yield CommonRun(len(run) + n - 1, int(run[0]), documents)


def _estimate_documents(store: Store, commonness: int) -> int:
    """Return how many documents have a shingle of a class, if they are as the learned sample was."""
    with autocommit(store.engine) as connection:
        row = connection.execute(store.corpus.statement(statements.ESTIMATE_DOCUMENTS)).fetchone()
    documents = int(row[0]) if row else 0
    return int(2**commonness * max(1.0, documents / SAMPLE_DOCUMENTS))


def _runs_with(
    store: Store, values: Int64Array, fingerprints: Int32Array, scopes: Scopes
) -> Iterator[CommonRun]:
    """Yield the runs of one text whose shingles have these fingerprints, given all its values."""
    own = Ragged(values.astype(np.int32), np.array([0, len(values)]))
    mixed = in_scopes(own, scopes).values
    places = np.flatnonzero(np.isin(mixed, fingerprints))
    if not len(places):
        return
    # Shingles that overlap or touch are one run.
    n = window_of(store.corpus.config.passages or 0).n
    for run in np.split(places, np.flatnonzero(np.diff(places) > n) + 1):
        start, end = int(run[0]), int(run[-1]) + n
        yield CommonRun(end - start, start, _count_documents(store, int(mixed[start])))


def _count_documents(store: Store, fingerprint: int) -> int:
    statement = store.corpus.statement(statements.COUNT_DOCUMENTS_OF_FINGERPRINT)
    with autocommit(store.engine) as connection:
        row = connection.execute(statement, [fingerprint]).fetchone()
    return int(row[0]) if row else 0


def passages_of(store: Store, key: str, min_words: int | None) -> list[Passage]:
    """Return the passages that a document shares with others; raises DocumentNotFound."""
    least = least_words(store, min_words)
    with snapshot(store.engine) as connection:
        cursor = connection.cursor(binary=True)
        row = row_of_key(cursor, store.corpus, key)
        tokens = tokens_of([form_of_row(store, row).encode()])
        sketches = sketch_tokens(tokens, store.corpus.config)
        look_up = passage_look_up(sketches, None if row[5] is None else [row[5]])
        candidates = read_candidates(cursor, store.corpus, look_up)
    verified = _verified(store, sketches, candidates, least)
    return [passage for passage in verified if passage.key != key]


def shared_passages(store: Store, min_words: int | None) -> Generator[SharedPassage, None, None]:
    """Yield the passages of at least min_words words that documents share, in one snapshot."""
    least = least_words(store, min_words)
    with snapshot(store.engine) as connection:
        cache = DocumentCache(connection, store.corpus, store.dictionary)
        expired = _expired(connection, store.corpus)
        with connection.cursor(store.corpus.label("shared passages"), binary=True) as cursor:
            cursor.execute(store.corpus.statement(statements.SHARED_FINGERPRINTS))
            for document_id, data in cursor:
                others = np.setdiff1d(load_int4_array(data), expired)
                if document_id not in expired:
                    for part in cache.parts(others.astype(np.int64)):
                        yield from _shared_with(cache, document_id, part, least)


def _expired(connection: Connection, corpus: StoredCorpus) -> Ids:
    """Return the ids of the documents that have expired."""
    if corpus.config.keep_for is None:
        return np.empty(0, np.int64)
    cursor = connection.cursor(binary=True)
    row = cursor.execute(corpus.statement(statements.EXPIRED_DOCUMENTS)).fetchone()
    data = row[0] if row else None
    return load_int4_array(data or b"").astype(np.int64)


def _shared_with(
    cache: DocumentCache, document_id: int, others: Ids, min_words: int
) -> Iterator[SharedPassage]:
    """Yield the passages that a document shares with others of its scope."""
    documents = cache.documents(np.concatenate(([document_id], others)))
    words, offsets, *_ = documents.rows()
    runs = shared_runs(
        words[: offsets[1]], words[offsets[1] :], offsets[1:] - offsets[1], min_words
    )
    scopes = documents.scopes
    for other, *run in zip(*(column.tolist() for column in runs), strict=True):
        if scopes is None or scopes[0] == scopes[other + 1]:
            yield SharedPassage(documents.keys[0], documents.keys[other + 1], *run)


def contamination(
    store: Store, records: Iterable[tuple[str, str]], min_words: int | None, scope: str | None
) -> Generator[Contamination, None, None]:
    """Yield what each record shares with the documents."""
    least = least_words(store, min_words)
    for key, text in records:
        sketches = sketch([to_bytes(text)], store.corpus.config)
        look_up = passage_look_up(sketches, None if scope is None else [scope])
        verified = _passages(store, sketches, look_up, least)
        words = count_units(sketches.tokens, store.corpus.config)
        coverage = _count_covered(verified, words) / max(words, 1)
        yield Contamination(str(key), words, coverage, sorted({each.key for each in verified}))


def _count_covered(verified: Sequence[Passage], words: int) -> int:
    """Return how many words of a text are in passages."""
    is_covered = np.zeros(words, np.bool_)
    for passage in verified:
        is_covered[passage.in_text : passage.in_text + passage.words] = True
    return int(is_covered.sum())


def _passages(store: Store, sketches: Sketches, look_up: LookUp, min_words: int) -> list[Passage]:
    return _verified(store, sketches, find_candidates(store, look_up, None), min_words)


def _verified(
    store: Store, sketches: Sketches, candidates: CandidateRows, min_words: int
) -> list[Passage]:
    vocabulary = WordNumbers(store.dictionary)
    documents = StoredDocuments(store.corpus, vocabulary, candidates.rows)
    words, offsets, *_ = documents.rows()
    text = rows_of_tokens(
        sketches.tokens, sketches.shingle_counts, vocabulary, store.corpus.config.shingle, True
    )
    runs = shared_runs(text.tokens, words, offsets, min_words)
    keys = [documents.keys[place] for place in runs.documents.tolist()]
    columns = (runs.words.tolist(), runs.in_text.tolist(), runs.in_document.tolist())
    verified = [Passage(*each) for each in zip(keys, *columns, strict=True)]
    return sorted(verified, key=lambda each: (-each.words, each.key, each.in_document))
