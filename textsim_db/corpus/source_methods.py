"""Attached tables, whose documents the corpus follows; merges of their rows; and rebuilding."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from typing import Unpack

from textsim_db.base.progress_bar import showing
from textsim_db.corpus.arguments import CheckedArguments
from textsim_db.db import stored_corpus
from textsim_db.errors import ConfigurationError, suggest_settings
from textsim_db.files.arrow_frames import ResultColumns, Results, columns_of
from textsim_db.results import ChangeReport, Drift, ForgetReport, MergeReport, Unmerged
from textsim_db.results.html import ResultList
from textsim_db.settings.check_values import check_flag, check_threshold, several_items
from textsim_db.settings.corpus_settings import CHANGEABLE, Settings
from textsim_db.settings.named_values import Existing, ExistingName, ModeName
from textsim_db.sync import sources
from textsim_db.sync.sources import ColumnName, TableName, names_of
from textsim_db.text.storable import Key, Scope, possible_keys


class SourceMethods(CheckedArguments):
    """Methods that attach tables, take duplicates out of them, and build the corpus anew."""

    def attach(
        self,
        table: TableName,
        key: ColumnName | None = None,
        text: ColumnName | None = None,
        mode: ModeName | None = None,
        progress: Callable[[int], None] | bool | None = None,
        *,
        key_columns: Sequence[ColumnName] | None = None,
        existing: ExistingName = Existing.REFUSE,
        scope: ColumnName | None = None,
        time: ColumnName | None = None,
        expires: ColumnName | None = None,
        row_filter: str | None = None,
        replace: bool = False,
    ) -> ChangeReport:
        """Attach a table: index its rows, and keep the corpus equal to the table from now on.

        The call returns when the rows are indexed. If it is interrupted, the table stays attached, and
        a worker indexes the remaining rows.

        Args:
            table: the name of the table as in SQL, a SQLAlchemy table or a mapped class.
            key: the key column, by name or as a column. It must be unique and of an integer type,
                uuid, text, varchar, date, timestamp or timestamptz.
            text: the column with the texts, by name or as a column.
            mode: with `"queue"` a worker indexes changes after their commit. With
                `"inline"` the transaction that writes a row also indexes it. By default `"queue"`; a
                unique corpus takes only `"inline"`, which is its default.
            key_columns: instead of `key`, the columns of a key of several columns, such as
                `["day", "id"]`. They must be unique together. `join_key` makes the key of a document
                from their values, and `split_key` gives the values back.
            existing: in a unique corpus, rows of the table may match each other or a document. Then
                `"refuse"` raises an error, and `"keep"` keeps the rows and logs a warning.
            scope: the column of the documents' scopes, by name or as a column, if the corpus is scoped.
                Its values become text. A row whose scope is NULL is set aside with an error; a unique
                corpus refuses it.
            time: if the corpus has `keep_for`, the column of the times from which the rows count for
                this long. It is of type timestamptz, timestamp or date; times without a time zone are of
                UTC. A row whose time is NULL counts for ever.
            expires: instead of `time`, the column of the times from which the rows no longer count.
            row_filter: a condition in SQL on the columns of a row, such as `"status = 'published'"`.
                Only the rows for which it is true have a document. It may use immutable functions and
                operators of PostgreSQL. A column of another type than those of PostgreSQL is read as
                text.
            replace: whether a table that is attached is attached anew, as the other arguments say, in
                one transaction. With the same key columns, documents that equal their rows stay as they
                are. In a unique corpus, forced ones stay forced.

        Raises:
            ConfigurationError: the table cannot be attached; or it is attached, but this role cannot
                index it, for example because of row security; or rows match, and the corpus is unique.

        Examples:
            >>> with db.engine.begin() as connection:
            ...     for statement in (
            ...         "CREATE TABLE article (id int PRIMARY KEY, body text)",
            ...         "INSERT INTO article VALUES (1, 'Snow fell in the hills.')",
            ...     ):
            ...         result = connection.exec_driver_sql(statement)
            >>> corpus.attach("article", key="id", text="body")
            ChangeReport(added=1, replaced=0, removed=0, unchanged=0, ...)
        """
        from textsim_db.sync import reconcile

        if key is not None and key_columns is not None:
            raise ConfigurationError("key and key_columns are both given; leave one of them out")
        expected = 'key_columns takes several columns, such as ["day", "id"]'
        several = [] if key_columns is None else list(several_items(key_columns, expected))
        keys = several if key is None else [key]
        names = names_of(table, keys, text, scope, time, expires)
        rules = sources.AttachRules(mode, existing, row_filter, replace)
        with showing(progress, "indexing", "rows") as show:
            changes = self._current.loaded().call_once(
                reconcile.attach_and_index, names, rules, show
            )
        self._current.load()  # it may have learned its common shingles
        return changes

    def detach(self, table: TableName) -> None:
        """Detach a table: its later changes are not indexed; the documents stay in the corpus.

        A table that was dropped is named by its oid.
        """
        self._current.loaded().call_once(sources.detach, table)

    def reconcile(self, progress: Callable[[int], None] | bool | None = None) -> ChangeReport:
        """Compare the corpus with its attached tables, and write what differs.

        This repairs changes that triggers missed: replication, disabled triggers, dropped partitions
        and dropped tables. It also gives word ids to documents that wait for them. If the corpus is
        tracked, it computes anew what check() finds wrong in its matches and clusters.

        Raises:
            ConfigurationError: this role cannot read an attached table.
        """
        from textsim_db.sync import reconcile

        with showing(progress, "comparing", "rows") as show:
            return self._current.loaded().call_once(reconcile.reconcile, show)

    def drift(self) -> Results[Drift]:
        """Return the documents that differ from their tables, which reconcile() would write.

        Changes that wait for a worker are among them.
        """
        from textsim_db.sync import reconcile

        def find() -> Generator[ResultColumns, None, None]:
            with closing(self._current.loaded().stream(reconcile.drift)) as chunks:
                for chunk in chunks:
                    yield columns_of(Drift, chunk)

        return Results(Drift, find)

    def merge(
        self,
        table: TableName | None = None,
        statement: str | None = None,
        keep: str = "first",
        threshold: float | None = None,
        scope: Scope | None = None,
    ) -> MergeReport:
        """Take the duplicates out of an attached table, so that one row of each cluster stays.

        They are those of duplicates() with judgements. Each row is locked, and compared again, before
        the statement runs for it. unmerge() brings the rows back: a log keeps each row as it was. A
        hundred rows are a transaction; after an error, call it again. It has the rights of the role that
        calls it, which needs SELECT and UPDATE on the table, and DELETE or what the statement needs.

        Args:
            table: the attached table, if there are several.
            statement: the SQL that deletes or marks a row, by default a DELETE. $1 is the key of the
                row, $2 the key of the row that is kept, and $3 the row as jsonb. It must not change the
                key: unmerge() would insert the old row beside the changed one.
            keep: the row of a cluster that is kept: the first or last in the byte order of the keys, or
                the longest or shortest. Of the ids 2 and 10 the first is 10.
            threshold: the lowest similarity of a duplicate; by default that of the corpus.
            scope: only documents of this scope are merged.

        Raises:
            ConfigurationError: an argument is wrong, a foreign key would change other rows and no
                statement is given, the statement changes several rows for a key, or a right is missing.
        """
        limit = None if threshold is None else check_threshold(threshold)
        stored = None if scope is None else self._scope(scope)
        return self._current.loaded().call_once(
            sources.merge, table, statement, keep, limit, stored
        )

    def unmerge(
        self,
        key: Key | None = None,
        kept: Key | None = None,
        run: int | None = None,
        since: datetime | str | None = None,
        mergeable: bool = False,
    ) -> list[Unmerged]:
        """Bring back rows that this role has merged, in one transaction.

        They are judged different from the row that was kept, and from its other copies, so that they
        stay apart. Of a cluster with hundreds of rows nothing is judged, and the outcome tells it. If
        another row has the key now, that row stays; the outcome tells this, too.

        Args:
            key: only the row with this key.
            kept: only rows in whose place the row with this key was kept.
            run: only rows of this run.
            since: only rows that were merged at this time or later.
            mergeable: judge nothing, so that the next merge takes the rows again.

        Raises:
            ConfigurationError: none of key, kept, run and since is given, or a right is missing.
        """
        keys = [None if each is None else self._key(each) for each in (key, kept)]
        flag = check_flag(mergeable, "mergeable")
        return ResultList(
            self._current.loaded().call_once(sources.unmerge, *keys, run, since, flag)
        )

    @suggest_settings(*CHANGEABLE)
    def rebuild(
        self,
        progress: Callable[[int, int], None] | bool | None = None,
        **settings: Unpack[Settings],
    ) -> bool:
        """Build the corpus anew with other settings while it stays in use; return whether it was built.

        With `boilerplate` set, it also learns the boilerplate from a sample, once. The words of
        boilerplate are then left out of all stored documents, and of all texts from then on.

        Searches use the old corpus until the new one is complete. Then one transaction replaces it, and
        moves attached tables. Writers wait only during this transaction. If the rebuild fails or is
        interrupted, the old corpus stays as it was.

        A tracked corpus stays tracked: its clusters keep their ids and their members. All documents wait
        for the next update of clusters, and members have no similarity until it has processed them.

        The other Corpus objects of this corpus read the new settings at their next search. A write
        through them raises CorpusChanged once.

        A corpus that an older recipe has built gets the recipe of this version. Its stored words are
        normalised anew, and its attached tables are compared, because their rows have the whole texts.

        If no stored row depends on the new settings, only the settings are stored. Examples are
        `is_unique=False`, and another threshold or recall with the same bands and rows. Other Corpus
        objects use these settings when they are opened again. Without any setting the corpus is built
        with the old settings, and its documents get ids from 1 on.

        Args:
            **settings: fields of CorpusSettings, except `stop_words`, `language`, `scoped` and
                `keep_for`. The other settings keep their values, and so does a setting that is None.

        Raises:
            ConfigurationError: a setting is out of range, or a view reads the tables of the corpus. With
                `is_unique` also if documents match each other, or if workers index an attached table.
            CorpusBusy: another session rebuilds the corpus or tracks it.

        Examples:
            >>> corpus.rebuild(threshold=0.7)
            True
            >>> corpus.config.bands, corpus.config.rows
            (25, 5)
        """
        from textsim_db.text.stop_words import with_guard_words
        from textsim_db.write import learn_from_sample, rebuild

        is_older = self.config.is_older
        if not is_older:
            self._current.load(is_checked=True)
        config = self.config
        changed = with_guard_words(config.changed(**settings))
        has_settings = any(value is not None for value in settings.values())
        if has_settings:
            stored_corpus.warn_of_misses(self.name, changed)
        is_known = has_settings and not changed.learns_boilerplate and not is_older
        if is_known and self._current.call(rebuild.is_enough, changed):
            if changed != config:
                self._current.call_once(rebuild.alter, changed)
                self._current.load()
            return False
        changed = self._current.call_once(learn_from_sample.learn_from_corpus, changed)
        with showing(progress, "rebuilding", "documents") as show:
            rebuilt = self._current.call_once(rebuild.rebuild, changed, show)
        self._current.store = replace(self._current.store, corpus=rebuilt)
        return True

    def forget(
        self,
        keys: Iterable[Key] | None = None,
        *,
        scope: Scope | None = None,
        all_expired: bool = False,
        all_removed: bool = False,
        later: bool = False,
        progress: Callable[[int, int], None] | bool | None = None,
    ) -> ForgetReport:
        """Remove documents and all that the database keeps of them, their words included.

        The documents, their judgements with the notes, the events of their clusters, and the log entries
        and merged rows with their keys are removed at once, in one transaction. Their words are in the
        dictionary of the corpus, which a rebuild writes anew; it runs at once, beside readers and
        writers, or with `later` when rebuild() or forget() is called next. Requests that come while it
        runs share the next rebuild. Then the tables of judgements, log entries and merged rows are
        written anew, because a removed row leaves its bytes in the file of its table.

        Args:
            keys: the keys of the documents.
            scope: instead of keys, the scope whose documents are forgotten.
            all_expired: instead of keys, forget all documents whose time is over.
            all_removed: instead of keys, forget the documents that were removed: the words that no
                document has, the judgements and events of keys that no document has, and the rows that
                merge() has deleted, which unmerge() then cannot bring back.
            later: leave the words to the next rebuild.

        Raises:
            ConfigurationError: a row with one of the keys stands in an attached table: delete the row
                first. Or not one of the four choices was made. Or rebuild() raises it.

        Examples:
            >>> corpus.forget(["recipe"]).has_words
            False
        """
        from textsim_db.write import remove_documents

        stored_keys: list[str] | None = None
        if keys is not None:
            several = several_items(keys, "forget() takes several keys, such as [key]")
            stored_keys = list(possible_keys(several))
        if all_expired and self.config.keep_for is None:
            raise ConfigurationError(f'corpus "{self.name}" keeps its documents for ever')
        self._current.load()
        stored_scope = None if scope is None else self._scope(scope)
        report = self._current.call(
            remove_documents.forget, stored_keys, stored_scope, all_expired, all_removed
        )
        if later:
            return report

        def rebuild() -> None:
            self._current.load(is_checked=True)
            self.rebuild(progress)

        self._current.load()
        try:
            self._current.call(remove_documents.erase, rebuild)
        except BaseException as error:
            error.add_note(
                "the documents are removed; their words go with the next rebuild by the owner of the "
                f"schema: textsim rebuild {shlex.quote(self.name)}"
            )
            raise
        report.has_words = self._current.call(remove_documents.has_words)
        report.to_run = self._current.call(remove_documents.write_anew)
        return report
