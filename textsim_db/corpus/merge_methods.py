"""Merges of rows of an attached table, which can be undone."""

from __future__ import annotations

from datetime import datetime

from textsim_db.corpus.arguments import CheckedArguments
from textsim_db.results import MergeReport, Unmerged
from textsim_db.results.html import ResultList
from textsim_db.settings.check_values import check_flag, check_threshold
from textsim_db.sync import sources
from textsim_db.sync.sources import TableName
from textsim_db.text.storable import Key


class MergeMethods(CheckedArguments):
    """Methods that take duplicates out of an attached table, and bring them back."""

    def merge(
        self,
        table: TableName | None = None,
        statement: str | None = None,
        keep: str = "first",
        threshold: float | None = None,
        cascade: bool = False,
    ) -> MergeReport:
        """Take the duplicates out of an attached table, so that one row of each cluster stays.

        They are those of duplicates() with judgements. Each row is locked, and compared again, before
        the statement runs for it. unmerge() brings the rows back: a log keeps each row as it was. A
        hundred rows are a transaction; after an error, call it again. It has the rights of the role that
        calls it, which needs SELECT and UPDATE on the table, and DELETE or what the statement needs.

        Args:
            table: the attached table, if there are several.
            statement: the SQL that deletes or marks a row, by default a DELETE. $1 is the key of the
                row, $2 the key of the row that is kept, and $3 the row as jsonb.
            keep: the row of a cluster that is kept: the first or last in the byte order of the keys, or
                the longest or shortest.
            threshold: the lowest similarity of a duplicate; by default that of the corpus.
            cascade: delete rows also if a foreign key then changes other rows, which do not come back.

        Raises:
            ConfigurationError: an argument is wrong, a foreign key would change other rows, the
                statement changes several rows for a key, or a right is missing.
        """
        limit = None if threshold is None else check_threshold(threshold)
        return self._current.loaded().call_once(
            sources.merge, table, statement, keep, limit, check_flag(cascade, "cascade")
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
        stay apart. If another row has the key now, that row stays; the outcome tells it.

        Args:
            key: only the row with this key.
            kept: only rows in whose place the row with this key was kept.
            run: only rows of this run.
            since: only rows that were merged at this time or later.
            mergeable: judge nothing, so that the next merge takes the rows again.

        Raises:
            ConfigurationError: none of key, kept, run and since is given, a right is missing, or more
                than 10,000 pairs of a cluster would be judged.
        """
        keys = [None if each is None else self._key(each) for each in (key, kept)]
        flag = check_flag(mergeable, "mergeable")
        return ResultList(
            self._current.loaded().call_once(sources.unmerge, *keys, run, since, flag)
        )
