"""Gives word ids to documents that SQL wrote with their normal form only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from textsim_db.db.binary_format import Array
from textsim_db.db.engine import Connection, transaction
from textsim_db.db.store import Store
from textsim_db.results import ChangeReport, Refusal
from textsim_db.sync import pending_log, statements
from textsim_db.sync.pieces import Piece, cut_keys
from textsim_db.text.languages import identify
from textsim_db.text.tokens import tokens_of
from textsim_db.write.prepared_batch import BATCH_DOCUMENTS


class _Completion(NamedTuple):
    """The parameters of statements.COMPLETE."""

    word_ids: Array
    language: str | None
    id: int
    normal_form: str


@dataclass(frozen=True, slots=True)
class Completions:
    """The word ids to store, and the documents that are refused."""

    documents: list[_Completion] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)


def waiting_pieces(store: Store) -> Iterator[Piece]:
    """Yield all documents of a corpus that wait for word ids, even if the log has no entry for them."""
    last = ""
    while True:
        with transaction(store.engine) as connection:
            statement = store.corpus.statement(statements.WAITING_KEYS)
            rows = connection.execute(statement, [last, BATCH_DOCUMENTS]).fetchall()
        if not rows:
            return
        yield from cut_keys(store, None, [key for (key,) in rows])
        last = rows[-1][0]


def resolve(piece: Piece) -> Completions:
    """Read the normal forms of a piece and look up the ids of their words."""
    with transaction(piece.store.engine) as connection:
        rows = connection.execute(
            piece.corpus.statement(statements.WAITING_FORMS), [piece.keys]
        ).fetchall()
    tokens = tokens_of([form.encode() for _, _, form in rows])
    all_word_ids = piece.store.dictionary.ensure(tokens)
    languages = [None] * len(rows) if piece.corpus.config.language is None else identify(tokens)
    completions = Completions()
    for (key, id_, form), (start, end), language in zip(
        rows, pairwise(tokens.word_offsets.tolist()), languages, strict=True
    ):
        word_ids = all_word_ids[start:end]
        if word_ids.all():
            document = _Completion(Array(word_ids), language, id_, form)
            completions.documents.append(document)
        else:
            word = tokens.words(start + np.flatnonzero(word_ids == 0)[:1])[0]
            reason = f'the word "{word[:40]}" has the same 64-bit hash as another one'
            completions.refused.append(Refusal(key, reason))
    return completions


def write(connection: Connection, piece: Piece, completions: Completions) -> ChangeReport:
    """Store the word ids, and postpone the documents that another transaction has locked."""
    cursor = connection.cursor(binary=True)
    cursor.executemany(piece.corpus.statement(statements.COMPLETE), completions.documents)
    rows = connection.execute(
        piece.corpus.statement(statements.STILL_WAITING), [piece.keys]
    ).fetchall()
    refused = {refusal.key for refusal in completions.refused}
    waiting = [key for (key,) in rows if key not in refused]
    if waiting:
        pending_log.postpone(connection, piece, waiting)
    completed = len(completions.documents) - len(waiting)
    return ChangeReport(completed=completed, refused=completions.refused)
