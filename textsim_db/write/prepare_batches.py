"""Cuts documents into batches, checks and sketches each batch, and compares it with stored documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.base.run_ahead import ahead, cut, in_batches, length_of
from textsim_db.db.binary_format import load_int4_array
from textsim_db.errors import DocumentError, Misfit
from textsim_db.results import Refusal
from textsim_db.settings.corpus_settings import CorpusConfig
from textsim_db.sketch.learned_shingles import (
    FEWEST_DOCUMENTS,
    SAMPLE_DOCUMENTS,
    learn_common,
)
from textsim_db.sketch.sketch_texts import (
    Sketches,
    sketch_tokens,
    tokens_and_languages,
    tokens_without,
    words_that_count,
)
from textsim_db.text.hashing import parts_of_scopes
from textsim_db.text.nfkc import normalize
from textsim_db.text.storable import (
    MAX_KEY_BYTES,
    is_null,
    possible_key,
    stored_key,
    stored_scope,
    to_bytes,
)
from textsim_db.text.tokens import tokenize_joined
from textsim_db.text.utf8 import Tokens, Utf8, check_batch_size, concatenate, encode_all


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents to be written, with distinct keys.

    They are sorted by key, but documents for a unique corpus are in the order in which they came.
    """

    keys: list[str]
    texts: Utf8
    """The texts; empty if the batch is a copy of stored documents."""
    sketches: Sketches
    refused: list[Refusal]
    """The documents that are not in the batch, because they cannot be stored."""
    repeated_keys: list[str]
    """The keys of the documents that are not in the batch, because a later one has the same key."""
    languages: list[str] | None = None
    """The language of each document; None if the corpus does not identify languages."""
    scopes: list[str] | None = None
    """The scope of each document; None if the corpus is not scoped."""
    expiries: list[bytes | None] | None = None
    """When each document expires, in the format of timestamptz_send; None in the list: never.

    None instead of the list: never, or in a corpus whose documents expire, as if they were written now.
    """
    word_ids: npt.NDArray[np.int32] | None = None
    """The ids of the words of all documents, once they are looked up; None in a corpus of characters."""

    def count_without_words(self) -> int:
        return int(np.count_nonzero(self.sketches.shingle_counts == 0))

    def words_of(self, i: int) -> npt.NDArray[np.int32] | None:
        if self.word_ids is None:
            return None
        offsets = self.sketches.tokens.word_offsets
        return self.word_ids[int(offsets[i]) : int(offsets[i + 1])]

    def language_of(self, i: int) -> str | None:
        return None if self.languages is None else self.languages[i]

    def scope_of(self, i: int) -> str | None:
        return None if self.scopes is None else self.scopes[i]

    def expiry_of(self, i: int) -> bytes | None:
        return None if self.expiries is None else self.expiries[i]

    def form_of(self, i: int) -> str:
        return self.sketches.tokens.form_of(i)


def prepare(items: list[Any], config: CorpusConfig) -> Batch:
    """Compute the words, signatures and buckets of documents; of a repeated key the last counts."""
    plain = _plain_texts(items, config)
    if plain is not None:
        with suppress(DocumentError):
            return _sketch(*plain, None, config, [], [])
    accepted, refused, repeated_keys = _accept_all(items, config)
    try:
        return _sketch_accepted(accepted, config, refused, repeated_keys)
    except DocumentError:
        # NFKC can make a text eleven times as long, so that the batch is too large. Only the texts that
        # are too long alone are refused.
        refused += _take_out_expanding(accepted)
        return _sketch_accepted(accepted, config, refused, repeated_keys)


def words_of(items: list[Any], config: CorpusConfig) -> Tokens:
    """Return the words of documents, which prepare() also computes, without documents it refuses."""
    plain = _plain_texts(items, config)
    if plain is not None:
        with suppress(DocumentError):
            return words_that_count(tokenize_joined(plain[1]), config)
    accepted, *_ = _accept_all(items, config)
    try:
        return tokens_without([text for text, _ in accepted.values()], config)
    except DocumentError:
        _take_out_expanding(accepted)
        return tokens_without([text for text, _ in accepted.values()], config)


def learn_from_first(
    documents: Iterator[Any], config: CorpusConfig
) -> tuple[CorpusConfig, Iterator[Any]]:
    """Return a configuration with the common shingles of the first documents, and all documents."""
    # A sample may have eight times the text of a batch.
    pieces = cut(documents, SAMPLE_DOCUMENTS, lambda document: length_of(document) // 8)
    head = next(pieces, [])
    # The pieces end with the error that the documents raised, if they did.
    documents = chain(head, documents, chain.from_iterable(pieces))
    last = {}
    for document in head:
        with suppress(TypeError, LookupError):  # the load refuses it
            last[str(document[0])] = document
    sample = list(last.values())
    if len(sample) < FEWEST_DOCUMENTS:
        return config, documents
    with closing(ahead(in_batches(sample), partial(words_of, config=config))) as samples:
        return learn_common(samples, config), documents


_Accepted = dict[str, tuple[bytes, str | None]]
"""The text and the scope of each document by key."""


def _accept_all(
    items: list[Any], config: CorpusConfig
) -> tuple[_Accepted, list[Refusal], list[str]]:
    accepted: _Accepted = {}
    refused: list[Refusal] = []
    repeated_keys: list[str] = []
    for item in items:
        try:
            key, content = _accept(item, config.scoped)
        except DocumentError as error:
            refused.append(_refusal(item, str(error)))
        else:
            if accepted.pop(key, None) is not None:
                repeated_keys.append(key)
            accepted[key] = content
    return accepted, refused, repeated_keys


def _plain_texts(items: list[Any], config: CorpusConfig) -> tuple[list[str], Utf8] | None:
    """Return keys and texts in the order of a batch, None if a document needs the checks of _accept().

    Most batches are tuples of two str, with distinct keys. They are checked and encoded together, which
    takes half the time.
    """
    if config.scoped or set(map(type, items)) != {tuple} or set(map(len, items)) != {2}:
        return None
    if set(map(type, chain.from_iterable(items))) != {str}:
        return None
    texts_by_key: dict[str, str] = dict(items)
    keys = _in_order(texts_by_key, config)
    names = "".join(keys)
    are_keys = names.isascii() and "\0" not in names and max(map(len, keys)) <= MAX_KEY_BYTES
    if len(keys) < len(items) or not are_keys:
        return None
    texts = encode_all([texts_by_key[key] for key in keys])
    return None if texts is None else (keys, texts)


def _in_order(keys: Iterable[str], config: CorpusConfig) -> list[str]:
    """Return keys in the order in which a batch is written.

    All writers lock documents in the order of the keys, so that they cannot deadlock. In a unique
    corpus the buckets are locked first, and of several twins the first one stays.
    """
    return list(keys) if config.is_unique else sorted(keys)


def _sketch_accepted(
    accepted: _Accepted, config: CorpusConfig, refused: list[Refusal], repeated_keys: list[str]
) -> Batch:
    keys = _in_order(accepted, config)
    texts = [accepted[key][0] for key in keys]
    check_batch_size(sum(map(len, texts)))
    scopes = [str(accepted[key][1]) for key in keys] if config.scoped else None
    return _sketch(keys, concatenate(texts), scopes, config, refused, repeated_keys)


def _sketch(
    keys: list[str],
    texts: Utf8,
    scopes: list[str] | None,
    config: CorpusConfig,
    refused: list[Refusal],
    repeated_keys: list[str],
) -> Batch:
    tokens, languages = tokens_and_languages(tokenize_joined(texts), config)
    parts = None if scopes is None else parts_of_scopes(scopes)
    sketches = sketch_tokens(tokens, config, parts)
    return Batch(keys, texts, sketches, refused, repeated_keys, languages, scopes)


def _take_out_expanding(accepted: _Accepted) -> list[Refusal]:
    """Remove and refuse the texts whose normal form alone is longer than a batch may be."""
    refused = []
    for key, (text, _) in list(accepted.items()):
        try:
            normalize(concatenate([text]))
        except DocumentError as error:
            refused.append(Refusal(key, str(error)))
            del accepted[key]
    return refused


def slice_of(batch: Batch, chosen: slice) -> Batch:
    if chosen == slice(0, len(batch.keys)):
        return batch
    sketches, tokens = batch.sketches, batch.sketches.tokens
    words = slice(tokens.word_offsets[chosen.start], tokens.word_offsets[chosen.stop])
    return replace(
        batch,
        keys=batch.keys[chosen],
        texts=batch.texts._replace(offsets=batch.texts.offsets[chosen.start : chosen.stop + 1]),
        sketches=replace(
            sketches,
            tokens=tokens.consecutive(chosen),
            shingle_counts=sketches.shingle_counts[chosen],
            signatures=sketches.signatures.consecutive(chosen),
            buckets=sketches.buckets.consecutive(chosen),
            fingerprints=sketches.fingerprints and sketches.fingerprints.consecutive(chosen),
            parts=None if sketches.parts is None else sketches.parts[chosen],
            guards=None if sketches.guards is None else sketches.guards[chosen],
        ),
        languages=batch.languages and batch.languages[chosen],
        scopes=batch.scopes and batch.scopes[chosen],
        expiries=batch.expiries and batch.expiries[chosen],
        word_ids=None if batch.word_ids is None else batch.word_ids[words],
    )


def without_words(batch: Batch, hidden: npt.NDArray[np.int64], config: CorpusConfig) -> Batch:
    """Refuse documents with a word, whose place is in hidden, that has the hash of another word."""
    tokens = batch.sketches.tokens
    owners = np.searchsorted(tokens.word_offsets, hidden, "right") - 1
    hidden_words = dict(zip(owners.tolist(), tokens.words(hidden), strict=True))
    refused = [
        Refusal(
            batch.keys[i],
            f'the word "{word[:40]}" has the same 64-bit hash as another word of the dictionary; '
            "remove the word from the text",
        )
        for i, word in hidden_words.items()
    ]
    kept = [i for i in range(len(batch.keys)) if i not in hidden_words]
    texts = concatenate([batch.texts.of(i) for i in kept])
    keys = [batch.keys[i] for i in kept]
    scopes = batch.scopes and [batch.scopes[i] for i in kept]
    return _sketch(keys, texts, scopes, config, batch.refused + refused, batch.repeated_keys)


def _accept(item: Any, is_scoped: bool) -> tuple[str, tuple[bytes, str | None]]:
    # These types can be unpacked too, but a str is not a pair of characters, and a set has no order.
    # Most items are tuples; for them isinstance() would take half the time of this function.
    if type(item) is not tuple and isinstance(
        item, str | bytes | bytearray | memoryview | Mapping | Set
    ):
        raise DocumentError(
            f"the item is of type {type(item).__name__}; expected a pair of key and text"
        )
    try:
        key, text, *scopes = item
    except (TypeError, ValueError):
        raise DocumentError("the item is not a pair of key and text") from None
    if len(scopes) > 1:
        raise DocumentError("the item has more than key, text and scope")
    scope = scopes[0] if scopes else None
    if not is_scoped:
        if scope is not None:
            raise DocumentError("the document has a scope, and the corpus is not scoped")
        return stored_key(key), (to_bytes(text), None)
    return stored_key(key), (to_bytes(text), stored_scope(scope))


def _refusal(item: Any, reason: str) -> Refusal:
    """Return the refusal of an item; if it has a null for a key, its text says which item it is."""
    if isinstance(item, tuple):
        item = tuple(value.value if isinstance(value, Misfit) else value for value in item)
    is_document = isinstance(item, tuple | list) and len(item) in (2, 3)
    if not is_document:
        return Refusal(repr(item)[:80], reason)
    key, text, *_ = item
    if is_null(key):
        reason += f"; the text begins with {str(text)[:40]!r}"
    return Refusal(key if isinstance(key, str) else possible_key(key) or repr(key)[:80], reason)


ADDED, REPLACED, UNCHANGED, COMPLETED, TWIN, EXTENDED = range(6)
"""The outcome of writing a document.

COMPLETED: the stored document has the same words, and gets their ids or its language. TWIN: a unique
corpus leaves the document out. EXTENDED: only the time when the document expires changes.
"""

Outcomes = npt.NDArray[np.int8]


class Stored(NamedTuple):
    id: int
    word_ids: bytes | None
    """None if the document has its normal form instead."""
    normal_form: str | None
    language: str | None
    part: int | None
    source_id: int | None
    """The attached table that the document comes from."""
    expires_at: bytes | None
    """In the format of timestamptz_send; None: never."""
    signature: bytes
    """Read only for documents that are locked."""


StoredByKey = dict[str, Stored]
"""Stored documents by key."""


def outcomes(
    batch: Batch, existing: StoredByKey, source_id: int | None
) -> tuple[Outcomes, list[int]]:
    """Return the outcomes of writing a batch, and the ids of documents that only get a new source."""
    outcome = np.full(len(batch.keys), ADDED, np.int8)
    adopted = []
    own = batch.sketches.parts
    parts = [None] * len(batch.keys) if own is None else own.tolist()
    for i, key in enumerate(batch.keys):
        stored = existing.get(key)
        if stored is None:
            continue
        if stored.part != parts[i]:
            outcome[i] = REPLACED
            continue
        words = batch.words_of(i)
        has_words = (
            stored.normal_form == batch.form_of(i)
            if stored.word_ids is None or words is None
            else np.array_equal(load_int4_array(stored.word_ids), words)
        )
        if has_words and _waits(stored, batch):
            outcome[i] = COMPLETED
            continue
        is_same = has_words and stored.language == batch.language_of(i)
        outcome[i] = UNCHANGED if is_same else REPLACED
        if is_same and stored.expires_at != batch.expiry_of(i):
            outcome[i] = EXTENDED
        if is_same and source_id is not None and stored.source_id != source_id:
            adopted.append(stored.id)
    return outcome, adopted


def _waits(stored: Stored, batch: Batch) -> bool:
    """Say whether a stored document waits for its word ids or its language, which the batch has."""
    has_no_ids = stored.word_ids is None and batch.word_ids is not None
    return has_no_ids or (stored.language is None and batch.languages is not None)
