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
from textsim_db.sync.faults import Subject
from textsim_db.sync.pieces import Piece, next_page
from textsim_db.text.languages import identify
from textsim_db.text.tokens import tokens_of


class _Completion(NamedTuple):
    """The parameters of statements.COMPLETE."""

    word_ids: Array
    language: str | None
    id: int
    normal_form: str


def words_of(corpus_id: int) -> Subject:
    """Return the step that gives the words of a corpus their ids."""
    name = f"words of corpus {corpus_id}"
    return Subject(name, corpus_id, f"the {name} get no ids")


@dataclass(frozen=True, slots=True, kw_only=True)
class WordPiece(Piece):
    """Documents that SQL wrote, and whose words wait for ids."""

    kind = "words"

    @property
    def subject(self) -> Subject:
        """The words of the corpus."""
        return words_of(self.corpus.id)

    def read_sizes(self) -> dict[str, int]:
        """Return the bytes of the normal forms, without the normal forms."""
        with transaction(self.store.engine) as connection:
            statement = self.corpus.statement(statements.WAITING_SIZES)
            return dict(connection.execute(statement, [self.keys]).fetchall())

    def resolve_changes(self) -> WordIds:
        """Read the normal forms and look up the ids of their words."""
        with transaction(self.store.engine) as connection:
            statement = self.corpus.statement(statements.WAITING_FORMS)
            rows = connection.execute(statement, [self.keys]).fetchall()
        tokens = tokens_of([form.encode() for _, _, form in rows])
        all_word_ids = self.store.dictionary.ensure(tokens)
        languages = [None] * len(rows) if self.corpus.config.language is None else identify(tokens)
        changes = WordIds(self)
        for (key, id_, form), (start, end), language in zip(
            rows, pairwise(tokens.word_offsets.tolist()), languages, strict=True
        ):
            word_ids = all_word_ids[start:end]
            if word_ids.all():
                document = _Completion(Array(word_ids), language, id_, form)
                changes.documents.append(document)
            else:
                word = tokens.words(start + np.flatnonzero(word_ids == 0)[:1])[0]
                reason = f'the word "{word[:40]}" has the same 64-bit hash as another one'
                changes.refused.append(Refusal(key, reason))
        return changes


@dataclass(frozen=True, slots=True)
class WordIds:
    """The word ids to store."""

    piece: WordPiece
    documents: list[_Completion] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    """The documents of which a word cannot have an id."""

    def write_changes(self, connection: Connection) -> ChangeReport:
        """Store the word ids, and postpone the documents that another transaction has locked."""
        corpus, keys = self.piece.corpus, self.piece.keys
        cursor = connection.cursor(binary=True)
        cursor.executemany(corpus.statement(statements.COMPLETE), self.documents)
        rows = connection.execute(corpus.statement(statements.STILL_WAITING), [keys]).fetchall()
        refused = {refusal.key for refusal in self.refused}
        waiting = [key for (key,) in rows if key not in refused]
        if waiting:
            pending_log.postpone(connection, self.piece, waiting)
        completed = len(self.documents) - len(waiting)
        return ChangeReport(completed=completed, refused=self.refused)


def waiting_pieces(store: Store) -> Iterator[WordPiece]:
    """Yield all documents of a corpus that wait for word ids, even if the log has no entry for them."""
    last: str | None = None
    while True:
        with transaction(store.engine) as connection:
            statement = store.corpus.statement(statements.WAITING_KEYS)
            rows = connection.execute(statement, next_page(last)).fetchall()
        if not rows:
            return
        yield from WordPiece(store=store, keys=[key for (key,) in rows]).cut()
        last = rows[-1][0]
