"""pairs() and clusters(): near-duplicates among texts in memory, without a database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from functools import partial
from hashlib import blake2b
from itertools import chain, pairwise
from typing import Any, NamedTuple, TypeVar, Unpack, overload

import numpy as np

from textsim_db.cluster import linkages
from textsim_db.cluster.join import Join
from textsim_db.cluster.linkages import Ranked
from textsim_db.cluster.loaded_documents import LoadedDocuments, rows_of
from textsim_db.compare.jaccard import Rows, take
from textsim_db.compare.match_rule import Criterion
from textsim_db.db.word_cache import WordCache, distinct_missing
from textsim_db.db.word_rows import part_of
from textsim_db.errors import DocumentError, suggest_settings
from textsim_db.measures.by_name import JACCARD
from textsim_db.results import Cluster, Pair, Refusal
from textsim_db.results.html import ResultList
from textsim_db.settings.corpus_settings import (
    PAIR_SETTINGS,
    CorpusConfig,
    CorpusSettings,
    Settings,
    check_linkage,
)
from textsim_db.sketch.ragged import Buckets, Ragged, apart, joined
from textsim_db.sketch.sketch_texts import Sketches
from textsim_db.text.left_out_words import with_lists
from textsim_db.text.numba_compiler import Int32Array, Int64Array
from textsim_db.text.run_ahead import ahead
from textsim_db.text.tokens import Tokens
from textsim_db.write.document_inputs import in_batches
from textsim_db.write.prepare_batches import Batch, prepare, without_words

Key = TypeVar("Key", str, int)


@overload
def pairs(  # type: ignore[overload-overlap]
    texts: Mapping[Key, str], **settings: Unpack[Settings]
) -> ResultList[Pair[Key]]: ...


@overload
def pairs(texts: Iterable[str], **settings: Unpack[Settings]) -> ResultList[Pair[int]]: ...


@suggest_settings(*PAIR_SETTINGS)
def pairs(
    texts: Mapping[Any, str] | Iterable[str], **settings: Unpack[Settings]
) -> ResultList[Pair[Any]]:
    """Return all pairs of similar texts, each once and verified exactly, best first.

    It needs no database; texts and pairs are in memory. The pairs are those of a corpus with these
    settings.

    Args:
        texts: the texts, which their places name in the result, from 0 on; or a mapping of keys to
            texts, with keys that are all texts or all integers.
        **settings: fields of CorpusSettings that say which texts match, such as threshold.

    Raises:
        ConfigurationError: a setting is unknown or out of range.
        DocumentError: a text cannot be compared, for example because it is None.

    Examples:
        >>> textsim_db.pairs(["Rain in the north on Monday.", "Rain in the north, on Monday!", "Sun."])
        [Pair(a=0, b=1, similarity=1.0)]
    """
    documents = _KeyedTexts.of(texts)
    join = _join(documents, settings, for_merges=False)
    found = [
        Pair(documents.keys[a], documents.keys[b], similarity)
        for links in join.pairs()
        for a, b, similarity in zip(
            np.minimum(links.left, links.right).tolist(),
            np.maximum(links.left, links.right).tolist(),
            links.similarity.tolist(),
            strict=True,
        )
    ]
    return ResultList(sorted(found, key=lambda pair: (-pair.similarity, pair.a, pair.b)))


@overload
def clusters(  # type: ignore[overload-overlap]
    texts: Mapping[Key, str], linkage: str = "single", **settings: Unpack[Settings]
) -> ResultList[Cluster[Key]]: ...


@overload
def clusters(
    texts: Iterable[str], linkage: str = "single", **settings: Unpack[Settings]
) -> ResultList[Cluster[int]]: ...


@suggest_settings(*PAIR_SETTINGS)
def clusters(
    texts: Mapping[Any, str] | Iterable[str], linkage: str = "single", **settings: Unpack[Settings]
) -> ResultList[Cluster[Any]]:
    """Return the clusters of similar texts, the largest first; each has two texts or more.

    It needs no database. The clusters are those of a corpus with these settings.

    Args:
        texts: as for pairs().
        linkage: how pairs make clusters, as in Corpus.clusters(). With "kept", the first text of a
            cluster is considered first.
        **settings: as for pairs().

    Raises:
        ConfigurationError: the linkage or a setting is unknown or out of range.
        DocumentError: a text cannot be compared, for example because it is None.

    Examples:
        >>> textsim_db.clusters({"a": "one two three", "b": "One, two, three.", "c": "four"})
        [Cluster(keys=('a', 'b'), weakest=1.0, kept=None)]
    """
    how = check_linkage(linkage)
    documents = _KeyedTexts.of(texts)
    groups = linkages.groups(_join(documents, settings, for_merges=True), how, _in_order)
    found = [group.with_keys(documents.keys.__getitem__) for group in groups]
    return ResultList(sorted(found, key=lambda cluster: (-len(cluster.keys), cluster.keys)))


_in_order: Ranked = np.sort


class _KeyedTexts(NamedTuple):
    """Texts in the order of their keys."""

    keys: Any
    """By number: the key."""
    texts: Iterable[str]

    @classmethod
    def of(cls, texts: Any) -> _KeyedTexts:
        if isinstance(texts, Mapping):
            keys = sorted(texts)
            return cls(keys, (texts[key] for key in keys))
        return cls(range(2**31), texts)

    def name_of(self, refusal: Refusal) -> str:
        return f"text {self.keys[int(refusal.key)]!r:.100}: {refusal.reason}"


def _join(documents: _KeyedTexts, settings: Settings, for_merges: bool) -> Join:
    chosen = CorpusSettings(**settings)
    criterion = Criterion(JACCARD, chosen.threshold, for_merges=for_merges)
    loading = _Loading(with_lists(chosen).complete(), for_merges)
    numbered = ((f"{number:010d}", text) for number, text in enumerate(documents.texts))
    with closing(ahead(in_batches(numbered), partial(prepare, config=loading.config))) as batches:
        for batch in chain(batches, [prepare([], loading.config)]):
            for refusal in loading.add(batch):
                raise DocumentError(documents.name_of(refusal))
    return Join(loading.host(), criterion)


class _Loading:
    """Documents that are being read; of those with equal words only one is stored."""

    def __init__(self, config: CorpusConfig, for_merges: bool) -> None:
        self.config = config
        self._for_merges = for_merges
        self._words = _Words()
        self._numbers: dict[bytes, int] = {}
        """The number of each text, by the hash of its words."""
        self._text_of: list[int] = []
        """By document: the number of its text."""
        self._rows: list[Rows] = []
        self._buckets: list[Buckets] = []
        self._guards: list[Int64Array] = []

    def add(self, batch: Batch) -> list[Refusal]:
        """Add documents; return those that are refused."""
        word_ids = self._words.ids(batch.sketches.tokens)
        if not word_ids.all():
            batch = without_words(batch, np.flatnonzero(word_ids == 0), self.config)
            word_ids = self._words.ids(batch.sketches.tokens)
        sketches = batch.sketches
        first = len(self._numbers)
        numbers = [
            self._numbers.setdefault(text, len(self._numbers)) for text in self._hashes(sketches)
        ]
        self._text_of += numbers
        new, places = np.unique(numbers, return_index=True)
        chosen = places[new >= first]
        rows = rows_of(sketches.tokens, word_ids, sketches.shingle_counts, self.config.shingle)
        self._rows.append(take(rows, chosen))
        self._buckets.append(sketches.buckets.take(chosen))
        if self._for_merges and sketches.guards is not None:
            self._guards.append(sketches.guards[chosen])
        return batch.refused

    def _hashes(self, sketches: Sketches) -> Iterator[bytes]:
        """Yield a hash of the words of each text; texts without words match nothing, so they differ."""
        tokens = sketches.tokens
        spans = pairwise(tokens.normal_offsets.tolist())
        for (start, end), count in zip(spans, sketches.shingle_counts.tolist(), strict=True):
            if count:
                yield blake2b(tokens.normal[start:end].data, digest_size=16).digest()
            else:
                yield len(self._numbers).to_bytes(8)

    def host(self) -> LoadedDocuments:
        """Return all documents, numbered in the order in which they were added."""
        tokens = joined([Ragged(rows.tokens, rows.offsets) for rows in self._rows])
        counts = [np.empty(0, np.int64), *(rows.shingle_counts for rows in self._rows)]
        rows = Rows(tokens.values, tokens.offsets, np.concatenate(counts), self.config.shingle.n)
        guards = np.concatenate(self._guards) if self._guards else None
        buckets = apart(joined(self._buckets), guards)
        return LoadedDocuments(np.array(self._text_of, np.int64), rows, buckets, self.config)


class _Words:
    """Gives ids to words."""

    def __init__(self) -> None:
        self._cache = WordCache(is_bounded=False)

    def ids(self, tokens: Tokens) -> Int32Array:
        """Return the id of each word, 0 for a word with the hash of another word: (words,)."""
        ids = self._cache.find(tokens)
        if not ids.all():
            words = part_of(tokens, distinct_missing(tokens, ids))
            first = len(self._cache) + 1
            self._cache.add(words, np.arange(first, first + len(words.hashes), dtype=np.int32))
            ids = self._cache.find(tokens)
        return ids
