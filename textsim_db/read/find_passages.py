"""Passages: a text in, the runs of words or characters that it shares with documents out.

The stages:

    text -> fingerprints -> documents that share one (a join with the index of the fingerprints)
         -> words as numbers -> shared runs -> passages, the longest first
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from textsim_db.base.numba_compiler import Int32Array, Int64Array
from textsim_db.cluster.spanning_forest import Ids
from textsim_db.compare.pair_values import code_points
from textsim_db.compare.shared_runs import regions_of, shared_runs
from textsim_db.db.binary_format import Parameter, array, load_int4_array
from textsim_db.db.dictionary import dictionary_of
from textsim_db.db.engine import Connection
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.errors import ConfigurationError, DocumentError
from textsim_db.read import statements
from textsim_db.read.bucket_pairs import uncounted_ids
from textsim_db.read.document_cache import DocumentCache
from textsim_db.read.find_candidates import (
    CandidateRows,
    find_candidates,
    look_up_of_shingles,
    without_common,
)
from textsim_db.read.search import placed_bytes
from textsim_db.read.snapshot import snapshot
from textsim_db.read.stored_documents import StoredDocuments, WordNumbers
from textsim_db.results import Contamination, Passage, PassageList, Region, SharedPassage
from textsim_db.results.rows import CommonRun
from textsim_db.results.shown_values import count, shown
from textsim_db.settings.check_values import check_count
from textsim_db.settings.choose_bands import window_of
from textsim_db.settings.corpus_settings import MIN_PASSAGE, CorpusConfig
from textsim_db.sketch.fingerprints import (
    PassageShingles,
    count_units,
    left_out_runs,
    passage_shingles,
)
from textsim_db.sketch.learned_shingles import SAMPLE_DOCUMENTS
from textsim_db.sketch.ragged import Parts, Ragged, in_parts, part_only
from textsim_db.sketch.sketch_texts import places_of_units, tokens_without
from textsim_db.text.storable import to_bytes
from textsim_db.text.utf8 import Tokens

log = logging.getLogger(__name__)


def least_words(store: Store, min_words: int | None) -> int:
    """Return the words of the shortest passage of a search, by default those of the corpus."""
    least, name = store.corpus.config.passages, store.corpus.name
    if least is None:
        raise ConfigurationError(
            f'corpus "{name}" has no passages; rebuild it with passages, such as: '
            f"textsim rebuild {shlex.quote(name)} --passages 13"
        )
    words = least if min_words is None else check_count(min_words, "min_words", 1, 2**31 - 1)
    if words < least:
        noun = store.corpus.config.shingle.noun
        remedy = "no corpus finds shorter ones"
        if least > MIN_PASSAGE:
            command = f"textsim rebuild {shlex.quote(name)} --passages {max(words, MIN_PASSAGE)}"
            remedy = f"for shorter ones, rebuild it, such as: {command}"
        raise ConfigurationError(
            f'corpus "{name}" finds passages of {least} {noun}s or more, and not of {words}: {remedy}'
        )
    return words


def passages(
    store: Store, text: str, min_words: int | None, max_documents: int | None, part: int | None
) -> PassageList:
    """Return the passages of a text of at least min_words words, the longest first.

    max_documents: the documents of a fingerprint that more documents have are not read, and the runs of
    the text with such fingerprints are returned beside the passages; None reads all. The runs without
    fingerprints are returned too.
    """
    least = least_words(store, min_words)
    _, shared, common = _search(store, to_bytes(text), least, max_documents, part)
    return PassageList(_with_characters(shared.passages, text, store.corpus.config), common)


def regions(
    store: Store,
    text: str,
    gap: int,
    min_words: int | None,
    max_documents: int | None,
    part: int | None,
) -> list[Region]:
    """Return the regions of documents that a text has, those with most words of it first."""
    least, config = least_words(store, min_words), store.corpus.config
    _, shared, _ = _search(store, to_bytes(text), least, max_documents, part)
    places = places_of_units(text, config)
    found = []
    for own in shared.by_document():
        for region in regions_of(*own, gap):
            start, end = places.span(region.in_text, region.words_in_text)
            runs = tuple(_with_characters(region.passages, text, config))
            found.append(region._replace(passages=runs, start=start, end=end))
    return sorted(found, key=lambda each: (-each.words_in_text, each.key, each.in_document))


def _search(
    store: Store, text: bytes, min_words: int, max_documents: int | None, part: int | None
) -> tuple[Tokens, _SharedPassages, list[CommonRun]]:
    """Return the words of a text, what it shares, and the runs whose documents were not read."""
    config, parts = store.corpus.config, part_only(part)
    tokens = tokens_without([text], config)
    shingles = passage_shingles(tokens, config)
    look_up = look_up_of_shingles(shingles, config, parts)
    common = list(_runs_without_fingerprints(store, shingles))
    if max_documents is not None:
        look_up, of_many = without_common(store, look_up, max_documents)
        common += _runs_with_fingerprints(store, shingles, of_many, parts)
    candidates = find_candidates(store, look_up, None)
    return tokens, _shared(store, tokens, candidates, min_words), common


def _with_characters(verified: Sequence[Passage], text: str, config: CorpusConfig) -> list[Passage]:
    if not verified:
        return []
    places = places_of_units(text, config)
    spans = (places.span(each.in_text, each.words) for each in verified)
    return [
        each._replace(start=start, end=end)
        for each, (start, end) in zip(verified, spans, strict=True)
    ]


def characters(store: Store, text: str, passage: Passage) -> tuple[int, int]:
    """Return the characters of a document's text before a passage, and up to its end."""
    config = store.corpus.config
    places = places_of_units(text, config)
    end, units = passage.in_document + passage.words, len(places.starts)
    if end > units:
        has = count(units, config.shingle.noun)
        raise DocumentError(
            f'the text of document "{passage.key}" has {has}; the passage ends after {end:,}, so '
            "this is another text"
        )
    return places.span(passage.in_document, passage.words)


def _runs_without_fingerprints(store: Store, shingles: PassageShingles) -> Iterator[CommonRun]:
    """Yield the runs of one text whose windows choose no shingle."""
    config = store.corpus.config
    n = window_of(config.passages or 0).n
    for run in left_out_runs(shingles, config):
        commonness = int(shingles.classes[run.start : run.start + run.shingles].min())
        ((documents,),) = store.read(statements.ESTIMATE_DOCUMENTS)
        # Estimate how many documents have the shingle, from the learned sample.
        estimate = int(2**commonness * max(1.0, documents / SAMPLE_DOCUMENTS))
        yield CommonRun(run.shingles + n - 1, run.start, estimate)


def _runs_with_fingerprints(
    store: Store, shingles: PassageShingles, fingerprints: Int32Array, parts: Parts
) -> Iterator[CommonRun]:
    """Yield the runs of one text whose shingles have these fingerprints."""
    own = Ragged(shingles.values.astype(np.int32), np.array([0, len(shingles.values)]))
    stored = in_parts(own, parts).values
    places = np.flatnonzero(np.isin(stored, fingerprints))
    if not len(places):
        return
    # Shingles that overlap or touch are one run.
    n = window_of(store.corpus.config.passages or 0).n
    part = None if parts is None else int(parts[0])
    for run in np.split(places, np.flatnonzero(np.diff(places) > n) + 1):
        start, end = int(run[0]), int(run[-1]) + n
        ((documents,),) = store.read(
            statements.COUNT_DOCUMENTS_OF_FINGERPRINT, [int(stored[start]), part]
        )
        yield CommonRun(end - start, start, int(documents))


def shared_passages(
    store: Store, min_words: int | None, max_documents: int | None
) -> Generator[SharedPassage, None, None]:
    """Yield the passages of at least min_words words that documents share, in one snapshot."""
    least = least_words(store, min_words)
    with snapshot(store.engine) as connection:
        common = list(_fingerprints_of_many(connection, store.corpus, max_documents))
        cache = DocumentCache(connection, store.corpus, dictionary_of(store))
        uncounted = uncounted_ids(connection, store.corpus)
        with connection.cursor(store.corpus.label("shared passages"), binary=True) as cursor:
            cursor.execute(store.corpus.statement(statements.SHARED_FINGERPRINTS), common)
            for document_id, data in cursor:
                others = np.setdiff1d(load_int4_array(data), uncounted)
                if document_id not in uncounted:
                    for batch in cache.batches(others.astype(np.int64)):
                        yield from _shared_with(cache, document_id, batch, least)


def _fingerprints_of_many(
    connection: Connection, corpus: StoredCorpus, max_documents: int | None
) -> tuple[Parameter, list[int | None]]:
    """Return the fingerprints that more documents have, and their parts; log that there are any."""
    if max_documents is None:
        return array(np.empty(0, np.int32)), []
    cursor = connection.cursor(binary=True)
    statement = corpus.statement(statements.FINGERPRINTS_OF_MANY)
    ((sent, parts),) = cursor.execute(statement, [max_documents]).fetchall()
    common = load_int4_array(sent)
    if len(common):
        log.warning(
            "corpus %s: left out fingerprints that more than %s documents have: %s",
            *(corpus.name, max_documents, len(common)),
            extra={"corpus": corpus.name, "fingerprints": len(common)},
        )
    return array(common), parts


def _shared_with(
    cache: DocumentCache, document_id: int, others: Ids, min_words: int
) -> Iterator[SharedPassage]:
    """Yield the passages that a document shares with others of its part."""
    documents = cache.documents(np.concatenate(([document_id], others)))
    words, offsets, *_ = documents.rows()
    runs = shared_runs(
        words[: offsets[1]], words[offsets[1] :], offsets[1:] - offsets[1], min_words
    )
    parts = documents.parts
    for other, *run in zip(*(column.tolist() for column in runs), strict=True):
        if parts is None or parts[0] == parts[other + 1]:
            yield SharedPassage(documents.keys[0], documents.keys[other + 1], *run)


def contamination(
    store: Store,
    records: Iterable[tuple[str, str]],
    min_words: int | None,
    max_documents: int | None,
    part: int | None,
) -> Generator[Contamination, None, None]:
    """Yield what each record shares with the documents; max_documents: as in passages()."""
    least = least_words(store, min_words)
    for key, text in records:
        data = placed_bytes(text, f'record "{shown(key)}"')
        tokens, shared, common = _search(store, data, least, max_documents, part)
        config = store.corpus.config
        words = count_units(tokens, config)
        is_covered = np.zeros(words, np.bool_)
        for passage in shared.passages:
            is_covered[passage.in_text : passage.in_text + passage.words] = True
        coverage = float(is_covered.sum()) / max(words, 1)
        keys = sorted({each.key for each in shared.passages})
        located = _with_characters(shared.passages, text, config)
        yield Contamination(key, words, coverage, keys, located, common)


class _SharedPassages(NamedTuple):
    """The passages that a text shares with documents."""

    passages: list[Passage]
    """The longest first."""
    text: Int32Array
    """The numbers of its words, or of its characters."""
    keys: list[str]
    documents: Int32Array
    """Those of all documents, which are read by their keys."""
    offsets: Int64Array

    def by_document(self) -> Iterator[tuple[list[Passage], Int32Array, Int32Array]]:
        passages_of = dict[str, list[Passage]]()
        for passage in self.passages:
            passages_of.setdefault(passage.key, []).append(passage)
        for key, (start, end) in zip(self.keys, pairwise(self.offsets.tolist()), strict=True):
            if key in passages_of:
                yield passages_of[key], self.text, self.documents[start:end]


def _shared(
    store: Store, tokens: Tokens, candidates: CandidateRows, min_words: int
) -> _SharedPassages:
    """Return what a text, given by its words, shares with candidates."""
    vocabulary = WordNumbers(dictionary_of(store))
    documents = StoredDocuments(store.corpus, vocabulary, candidates.rows)
    words, offsets, *_ = documents.rows()
    if store.corpus.config.shingle.unit == "char":
        text = code_points(tokens.forms())[0]
    else:
        text = vocabulary.numbers(tokens)
    runs = shared_runs(text, words, offsets, min_words)
    keys = [documents.keys[place] for place in runs.documents.tolist()]
    columns = (runs.words.tolist(), runs.in_text.tolist(), runs.in_document.tolist())
    passages = [Passage(*each) for each in zip(keys, *columns, strict=True)]
    passages.sort(key=lambda each: (-each.words, each.key, each.in_document))
    return _SharedPassages(passages, text, documents.keys, words, offsets)
