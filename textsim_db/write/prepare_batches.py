"""Cuts documents into batches, and checks and sketches each batch for the database; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt

from textsim_db.errors import DocumentError, Misfit
from textsim_db.results import Refusal
from textsim_db.settings import CorpusConfig
from textsim_db.sketch.sketch_texts import (
    Sketches,
    sketch_tokens,
    tokens_and_languages,
    tokens_without,
)
from textsim_db.text.run_ahead import cut
from textsim_db.text.tokens import Tokens
from textsim_db.text.utf8 import is_null, to_bytes, wrong_value

BATCH_DOCUMENTS = 5000
"""Documents of a batch. Larger batches need more memory, and a load starts and ends more slowly."""
MAX_KEY_BYTES = 1000
MAX_SCOPE_BYTES = 200
MAX_NOTE_BYTES = 10_000
_EXPECTED = "str, an integer or a UUID"


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents to be written, with distinct keys.

    They are sorted by key; those for a unique corpus are in the order in which they came.
    """

    keys: list[str]
    texts: list[bytes]
    """The texts in UTF-8; empty if the batch is a copy of stored documents."""
    sketches: Sketches
    refused: list[Refusal]
    """The documents that are not in the batch, because they cannot be stored."""
    repeated_keys: int
    """How many documents are not in the batch, because a later one has the same key."""
    languages: list[str] | None = None
    """The language of each document; None if the corpus does not identify languages."""
    scopes: list[str] | None = None
    """The scope of each document; None if the corpus is not scoped."""
    expiries: list[bytes | None] | None = None
    """When each document expires, in the format of timestamptz_send; None in the list: never.

    None instead of the list: never, or in a corpus whose documents expire, as if they were written now.
    """
    word_ids: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    """The ids of the words of all documents, once they are looked up."""

    def words_of(self, i: int) -> npt.NDArray[np.int32]:
        """Return the word ids of a document."""
        offsets = self.sketches.tokens.word_offsets
        return self.word_ids[int(offsets[i]) : int(offsets[i + 1])]

    def language_of(self, i: int) -> str | None:
        """Return the language of a document, None if the corpus does not identify languages."""
        return None if self.languages is None else self.languages[i]

    def scope_of(self, i: int) -> str | None:
        """Return the scope of a document, None if the corpus is not scoped."""
        return None if self.scopes is None else self.scopes[i]

    def expiry_of(self, i: int) -> bytes | None:
        """Return when a document expires, None if it never does."""
        return None if self.expiries is None else self.expiries[i]

    def form_of(self, i: int) -> str:
        """Return the normal form of a document."""
        tokens = self.sketches.tokens
        return tokens.span(int(tokens.normal_offsets[i]), int(tokens.normal_offsets[i + 1]))


def in_batches(documents: Iterable[Any]) -> Iterator[list[Any]]:
    """Cut a stream of documents into lists, by number of documents and of characters.

    A document is (key, text), or (key, text, scope) in a scoped corpus.
    """
    return cut(documents, BATCH_DOCUMENTS, length_of)


def prepare(items: list[Any], config: CorpusConfig) -> Batch:
    """Check documents, and compute their words, signatures and buckets.

    If several documents have the same key, the last one counts.
    """
    accepted, refused = _accept_all(items, config)
    repeated_keys = len(items) - len(refused) - len(accepted)
    try:
        return _sketch(accepted, config, refused, repeated_keys)
    except DocumentError:
        # NFKC can make a text eleven times as long, so that the batch is too large. Only the texts that
        # are too long alone are refused.
        refused += _take_out_expanding(accepted, config)
        return _sketch(accepted, config, refused, repeated_keys)


def words_of(items: list[Any], config: CorpusConfig) -> Tokens:
    """Return the words of documents, which prepare() also computes, without documents it refuses."""
    accepted, _ = _accept_all(items, config)
    try:
        return tokens_without([text for text, _ in accepted.values()], config)
    except DocumentError:
        _take_out_expanding(accepted, config)
        return tokens_without([text for text, _ in accepted.values()], config)


_Accepted = dict[str, tuple[bytes, str | None]]
"""The text and the scope of each document by key."""


def _accept_all(items: list[Any], config: CorpusConfig) -> tuple[_Accepted, list[Refusal]]:
    """Return the documents by key, and those that cannot be stored."""
    accepted: _Accepted = {}
    refused: list[Refusal] = []
    for item in items:
        try:
            key, content = _accept(item, config.scoped)
        except DocumentError as error:
            refused.append(_refusal(item, str(error)))
        else:
            accepted.pop(key, None)
            accepted[key] = content
    return accepted, refused


def _sketch(
    accepted: _Accepted, config: CorpusConfig, refused: list[Refusal], repeated_keys: int
) -> Batch:
    # All writers lock documents in the order of the keys, so that they cannot deadlock. In a unique
    # corpus the buckets are locked first, and of several twins the first one stays.
    keys = list(accepted) if config.is_unique else sorted(accepted)
    texts = [accepted[key][0] for key in keys]
    scopes = [str(accepted[key][1]) for key in keys] if config.scoped else None
    tokens, languages = tokens_and_languages(texts, config)
    sketches = sketch_tokens(tokens, config, scopes)
    return Batch(keys, texts, sketches, refused, repeated_keys, languages, scopes)


def _take_out_expanding(accepted: _Accepted, config: CorpusConfig) -> list[Refusal]:
    """Remove and refuse the texts whose normal form alone is longer than a batch may be."""
    refused = []
    for key, (text, _) in list(accepted.items()):
        try:
            tokens_and_languages([text], config)
        except DocumentError as error:
            refused.append(Refusal(key, str(error)))
            del accepted[key]
    return refused


def part_of(batch: Batch, part: slice) -> Batch:
    """Return a batch with a part of the documents; part has a start and a stop."""
    if part == slice(0, len(batch.keys)):
        return batch
    sketches, tokens = batch.sketches, batch.sketches.tokens
    bounds = slice(part.start, part.stop + 1)
    offsets = tokens.word_offsets[bounds]
    words = slice(int(offsets[0]), int(offsets[-1]))
    return replace(
        batch,
        keys=batch.keys[part],
        texts=batch.texts[part],
        sketches=replace(
            sketches,
            tokens=tokens._replace(
                normal_offsets=tokens.normal_offsets[bounds],
                starts=tokens.starts[words],
                ends=tokens.ends[words],
                word_offsets=offsets - offsets[0],
                hashes=tokens.hashes[words],
            ),
            shingle_counts=sketches.shingle_counts[part],
            signatures=sketches.signatures.part(part),
            buckets=sketches.buckets.part(part),
            fingerprints=sketches.fingerprints and sketches.fingerprints.part(part),
        ),
        languages=batch.languages and batch.languages[part],
        scopes=batch.scopes and batch.scopes[part],
        expiries=batch.expiries and batch.expiries[part],
        word_ids=batch.word_ids[words],
    )


def without_words(batch: Batch, hidden: npt.NDArray[np.int64], config: CorpusConfig) -> Batch:
    """Refuse documents with a word that has the same hash as another word of the dictionary.

    hidden: (words,), the places of such words in the batch.
    """
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
    texts = [batch.texts[i] for i in kept]
    kept_tokens, languages = tokens_and_languages(texts, config)
    scopes = batch.scopes and [batch.scopes[i] for i in kept]
    return replace(
        batch,
        keys=[batch.keys[i] for i in kept],
        texts=texts,
        sketches=sketch_tokens(kept_tokens, config, scopes),
        refused=batch.refused + refused,
        languages=languages,
        scopes=scopes,
    )


def length_of(item: Any) -> int:
    """Return the characters of the text of a document, 0 if it is none."""
    with suppress(TypeError, IndexError, KeyError):  # refused when the batch is prepared
        return len(item[1])
    return 0


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
        raise DocumentError("the item has more parts than key, text and scope")
    scope = scopes[0] if scopes else None
    if not is_scoped:
        if scope is not None:
            raise DocumentError("the document has a scope, and the corpus is not scoped")
        return stored_key(key), (to_bytes(text), None)
    return stored_key(key), (to_bytes(text), stored_scope(scope))


def stored_key(key: object) -> str:
    """Return a key as it is stored; raise DocumentError if it cannot be stored.

    Integers, also those of NumPy, and UUIDs are stored as their text.
    """
    if type(key) is str and key.isascii() and len(key) <= MAX_KEY_BYTES and "\0" not in key:
        return key
    if not isinstance(key, str):
        if isinstance(key, bool) or not isinstance(key, Integral | UUID):
            raise wrong_value(key, "key", _EXPECTED)
        if isinstance(key, Integral) and abs(int(key)) >= 10**MAX_KEY_BYTES:
            raise DocumentError(f"the key is longer than {MAX_KEY_BYTES} digits")
        key = str(key) if isinstance(key, UUID) else str(int(key))
    return _encodable(key, "key", MAX_KEY_BYTES)


def stored_scope(scope: object) -> str:
    """Return a scope as it is stored; raise DocumentError if it cannot be stored.

    Integers and UUIDs are stored as their text.
    """
    if (
        type(scope) is str
        and scope.isascii()
        and len(scope) <= MAX_SCOPE_BYTES
        and "\0" not in scope
    ):
        return scope
    if is_null(scope):
        raise DocumentError("the scope is missing; documents of a scoped corpus have one")
    if isinstance(scope, Integral | UUID) and not isinstance(scope, bool):
        scope = str(scope)
    if not isinstance(scope, str):
        raise wrong_value(scope, "scope", _EXPECTED)
    return _encodable(scope, "scope", MAX_SCOPE_BYTES)


def _encodable(text: str, noun: str, most: int) -> str:
    """Return a text of at most this many bytes; raise DocumentError if it cannot be stored."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise DocumentError(f"the {noun} has a lone surrogate") from None
    if b"\0" in data:
        raise DocumentError(f"the {noun} has a NUL character")
    if len(data) > most:
        raise DocumentError(f"the {noun} is {len(data)} bytes long; at most {most} are possible")
    return text


def stored_note(note: object) -> str:
    """Return the note of a judgement; raise DocumentError if it cannot be stored."""
    if not isinstance(note, str):
        raise wrong_value(note, "note", "str")
    return _encodable(note, "note", MAX_NOTE_BYTES)


def possible_key(key: object) -> str | None:
    """Return a key as it is stored, None if it cannot be the key of a document."""
    with suppress(DocumentError):
        return stored_key(key)
    return None


def _refusal(item: Any, reason: str) -> Refusal:
    """Return the refusal of an item; if it has a null for a key, its text says which item it is."""
    if isinstance(item, tuple):
        item = tuple(part.value if isinstance(part, Misfit) else part for part in item)
    if isinstance(item, tuple | list) and len(item) in (2, 3) and is_null(item[0]):
        reason += f"; the text begins with {str(item[1])[:40]!r}"
    return Refusal(_shown_key(item), reason)


def _shown_key(item: Any) -> str:
    if isinstance(item, tuple | list) and len(item) in (2, 3):
        key = item[0]
        return key if isinstance(key, str) else possible_key(key) or repr(key)[:80]
    return repr(item)[:80]
