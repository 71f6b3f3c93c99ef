"""The documents of a corpus: written, counted, listed and removed."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, LiteralString

from textsim_db.base.progress_bar import showing
from textsim_db.corpus.arguments import CheckedArguments
from textsim_db.db.store import Store
from textsim_db.errors import ConfigurationError, DuplicateError
from textsim_db.files.arrow_frames import ResultColumns, Results, columns_of
from textsim_db.files.several_texts import Documents, stream_documents
from textsim_db.read import statements
from textsim_db.read.snapshot import snapshot
from textsim_db.results import AddReport, Answer, Rejected, StoredKey
from textsim_db.results.html import ResultList
from textsim_db.settings.check_values import check_raised, several_items
from textsim_db.text.storable import Key, Scope, possible_key
from textsim_db.write import remove_documents

_LISTED_AT_ONCE = 10_000


class DocumentMethods(CheckedArguments):
    """Methods that write, count and remove documents."""

    def add_many(
        self,
        documents: Documents,
        progress: Callable[[AddReport], None] | bool | None = None,
        *,
        key: str | None = None,
        text: str | None = None,
        scope: str | list[str] | None = None,
        unique_from: float | None = None,
    ) -> AddReport:
        """Add documents, and replace the stored documents that have the same keys.

        The documents are read in batches, and each batch is one transaction. A document whose words
        did not change is not written. If several documents have the same key, the last one counts.

        A document that cannot be stored is refused: the report has its key and the reason, and the
        other documents are added. Reasons are a NUL character, a lone surrogate, a key of over 1,000
        bytes, a text of over 128 MiB, or a wrong type.

        After a deadlock or a lost connection a batch is written again, for about 10 seconds. If
        another client writes the same keys in between, its documents may be replaced. A batch that
        exceeds a time limit of the server is written in halves, down to single documents. If the call
        fails, the batches before the error stay stored, and a second call adds only what is missing.

        Args:
            documents: an iterable of (key, text), or a mapping of key to text. In a scoped corpus
                an iterable of (key, text, scope). With `key` and `text` also an iterable of records
                such as dicts, a data frame of pandas or Polars, or any table with the Arrow PyCapsule
                interface, such as one of PyArrow or DuckDB, which needs PyArrow. A key is a str, an
                integer or a UUID; integers and UUIDs are stored as their text. A null or a value of a
                wrong type in a frame is refused with its column and row, from 0 on.
            key: the name of the column, or the member of a record, that holds the keys.
            text: the name of the column, or the member of a record, that holds the texts.
            scope: the name of the column, or the member of a record, that holds the scopes, or a list of
                names, whose values join_key() joins. A scope is a str of up to 200 bytes, an integer or
                a UUID; other documents are refused.
            unique_from: as in add().

        Raises:
            ConfigurationError: the documents are of another kind, such as a list of texts.
            DatabaseError: the database failed; the message names the document if one is the cause.

        Examples:
            >>> corpus.add_many([{"id": 7, "body": "Rain is expected."}], key="id", text="body")
            AddReport(added=1, replaced=0, unchanged=0, ...)
        """
        from textsim_db.write import learn_from_sample, load_batches

        lowest = check_raised(unique_from, force=False)
        stream = stream_documents(documents, key, text, scope)
        with showing(progress, "indexing", "documents") as show:
            learned, stream = self._current.checked().call_once(
                learn_from_sample.learn_from_load, stream
            )
            if learned is not None:
                self._current.store = replace(self._current.store, corpus=learned)
            return self._current.checked().call_once(load_batches.add_many, stream, show, lowest)

    def add(
        self,
        key: Key,
        text: str,
        scope: Scope | None = None,
        *,
        force: bool = False,
        unique_from: float | None = None,
    ) -> AddReport:
        """Add or replace one document; a document of a scoped corpus has a scope.

        For more than a few documents use add_many(), which is much faster.

        Args:
            key: the key of the document.
            text: its text.
            scope: the part of a scoped corpus that it belongs to.
            force: store it although the corpus is unique and other documents match it, unless one of
                them has exactly the same shingles. It stands in the way of later documents as any
                other does, and check() accepts it.
            unique_from: the similarity from which a match keeps it out, if it is above that of the
                corpus; `math.inf` stores even a copy.

        Raises:
            DocumentError: the document cannot be stored; add_many() lists the reasons.
            DuplicateError: the corpus is unique and has documents that match this one.

        Examples:
            >>> corpus.add("weather", "Rain is expected in the north.")
            AddReport(added=1, replaced=0, unchanged=0, ...)
        """
        from textsim_db.write import load_batches

        report, answer = self._current.checked().call_once(
            load_batches.add, key, text, self._scope(scope), check_raised(unique_from, force)
        )
        if not answer.is_stored:
            raise DuplicateError(self.name, report.twins[0].key, answer.matches, answer.reason)
        return report

    def add_unique(
        self,
        key: Key,
        text: str,
        scope: Scope | None = None,
        *,
        force: bool = False,
        unique_from: float | None = None,
    ) -> Answer:
        """Add or replace one document of a unique corpus, unless other documents match it.

        The `outcome` of the answer is twin if others keep it out, or rejected, with the `reason`, if a
        rejected document does; nothing was written then. Otherwise it is stored: new; doubtful, if it
        has matches below `unique_from`; sibling, if it only has matches whose guards differ; or
        unchanged. The `matches` of the answer are the twins, the rejected ones first, or else the best
        ten of these matches that nobody has judged, the doubtful ones first. Three documents at most
        are compared as siblings, which share the most buckets. The arguments are those of add().

        Raises:
            DocumentError: the document cannot be stored; add_many() lists the reasons.

        Examples:
            >>> titles = db.create_corpus("titles", threshold=0.6, recall=1, is_unique=True)
            >>> titles.add_unique("a", "The city council approved the new budget for schools.")
            Answer(outcome=<Outcome.NEW: 'new'>, matches=[], reason=None)
            >>> text = "The city council approved the new budget for schools today."
            >>> answer = titles.add_unique("b", text)
            >>> print(answer.outcome)
            twin
            >>> answer.matches
            [Match(key='a', similarity=0.875, differs=())]
        """
        from textsim_db.write import load_batches

        if not self.config.is_unique:
            raise ConfigurationError(
                f'corpus "{self.name}" accepts near-duplicates; to keep them out: '
                f"textsim rebuild {shlex.quote(self.name)} --unique"
            )
        scope, lowest = self._scope(scope), check_raised(unique_from, force)
        return self._current.checked().call_once(load_batches.add, key, text, scope, lowest, True)[
            1
        ]

    def reject(self, key: Key, reason: str) -> str:
        """Reject the text of a document of a unique corpus, so that it does not come back.

        The document counts nowhere any more, and keeps its twins out: the outcome of add_unique() is
        rejected. Its key is free, and the new key is returned: remove() of the new key ends the
        rejection. It lasts as long as a document of the corpus.

        Args:
            key: the key of the document.
            reason: why; answers and errors name it.

        Raises:
            DocumentNotFound: no document has this key.
            ConfigurationError: the corpus is not unique.

        Examples:
            >>> posts = db.create_corpus("posts", threshold=0.6, recall=1, is_unique=True)
            >>> posts.add("1", "Win a new phone today, just click on the link below!").added
            1
            >>> posts.reject("1", "spam")
            'rejected: 1'
            >>> answer = posts.add_unique("2", "Win a new phone today: just click on the link below")
            >>> print(answer.outcome, answer.reason)
            rejected spam
            >>> posts.rejected()
            [Rejected(key='rejected: 1', reason='spam', scope=None)]
        """
        return self._current.call(remove_documents.reject, self._key(key), reason)

    def rejected(self, scope: Scope | None = None) -> list[Rejected]:
        """Return the rejected documents, in the order of their keys.

        Args:
            scope: only those of this scope.

        Raises:
            ConfigurationError: the corpus has no scopes.
        """
        chosen = None if scope is None else self._scope(scope)
        return ResultList(self._current.call(remove_documents.rejected, chosen))

    def remove(self, keys: Iterable[Key]) -> int:
        """Remove documents by key, and return how many were removed; unknown keys are skipped.

        Lost connections and time limits are handled as in add_many(). Records that `textsim dedupe
        --add` dropped in favour of a removed document do not come back by themselves; keys() counts
        them.

        Examples:
            >>> corpus.remove(["recipe", "no such key"])
            1
        """
        several = several_items(keys, "remove() takes several keys, such as [key]")
        return self._current.call_once(remove_documents.remove, several)

    def keys(
        self,
        prefix: str = "",
        *,
        source: str | None = None,
        scope: Scope | None = None,
        language: str | None = None,
    ) -> Results[StoredKey]:
        """Return the keys of the documents, in byte order; an expired document has none.

        Args:
            prefix: only keys that begin with it.
            source: only documents of this attached table.
            scope: only documents of this scope.
            language: only documents in this language.

        Examples:
            >>> [each.key for each in corpus.keys("u")]
            ['update']
            >>> corpus.remove(each.key for each in corpus.keys("u"))
            1
        """
        chosen = {
            "prefix": prefix,
            "source": source,
            "scope": None if scope is None else self._scope(scope),
            "language": self._language(language),
        }
        return Results(StoredKey, partial(self._current.stream, _listed_keys, chosen))

    def _records_of(self, keys: Iterable[Key]) -> dict[str, int]:
        """Return for each of these keys that has a document the number of its records."""
        possible = [each for each in map(possible_key, keys) if each is not None]
        return dict(self._current.call(Store.read, statements.RECORDS_OF_KEYS, [possible]))

    def expire(self, progress: Callable[[int], None] | bool | None = None) -> int:
        """Remove the documents whose time is over, and return how many were removed.

        The clock of the server decides, as it is now. Searches do not find them in any case, and a
        worker removes them an hour later. Each transaction removes up to a thousand documents.
        Documents that another transaction is writing are left to a later call.

        Examples:
            >>> chats = db.create_corpus("chats", keep_for="30 days")
            >>> chats.add("a", "See you at eight in front of the station.").added
            1
            >>> chats.expire()
            0
        """
        if self.config.keep_for is None:
            raise ConfigurationError(f'corpus "{self.name}" keeps its documents for ever')
        with showing(progress, "removing", "documents") as show:
            return self._current.call_once(remove_documents.expire, show)

    def normal_form(self, key: Key) -> str:
        """Return the words of an indexed document, with one space between them.

        Examples:
            >>> corpus.normal_form("recipe")
            'whisk two eggs with sugar and fold in the sifted flour'
        """
        from textsim_db.read import search

        return self._current.call(search.normal_form_of, self._key(key))

    def __len__(self) -> int:
        """Return the number of documents."""
        return int(self._current.call(_value, statements.COUNT_DOCUMENTS))

    def __bool__(self) -> bool:
        # Without this, an empty corpus would be false.
        return True

    def __contains__(self, key: object) -> bool:
        """Return whether the corpus has a document with this key."""
        stored = possible_key(key)
        return stored is not None and bool(
            self._current.call(_value, statements.HAS_DOCUMENT, stored)
        )


def _listed_keys(
    store: Store, chosen: Mapping[str, str | None]
) -> Generator[ResultColumns, None, None]:
    statement = store.corpus.statement(statements.LISTED_KEYS)
    with (
        snapshot(store.engine) as connection,
        connection.cursor(store.corpus.label("keys")) as cursor,
    ):
        cursor.execute(statement, chosen)
        while rows := cursor.fetchmany(_LISTED_AT_ONCE):
            yield columns_of(StoredKey, rows)


def _value(store: Store, statement: LiteralString, *parameters: str) -> Any:
    ((value,),) = store.read(statement, parameters)
    return value
