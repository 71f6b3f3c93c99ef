"""Status: what a corpus holds, what waits, what failed, and whether its rows are intact."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from textsim_db.corpus.arguments import CheckedArguments, checked_count
from textsim_db.errors import ConfigurationError, DatabaseError, RecipeError
from textsim_db.lazy_imports import lazy
from textsim_db.progress_bar import showing
from textsim_db.results import Activity, Failure, Problem, ScopeStatus, Status
from textsim_db.show.result_list import ResultList
from textsim_db.sync import pending_log, status

if TYPE_CHECKING:
    from textsim_db.integrity import check_corpus
else:
    check_corpus = lazy("textsim_db.integrity.check_corpus", globals())


class StatusMethods(CheckedArguments):
    """Methods that show the state of a corpus."""

    def status(self) -> Status:
        """Return how many documents are indexed, wait for a worker, or were set aside.

        Examples:
            >>> status = corpus.status()
            >>> status.indexed, status.pending
            (3, 0)
        """
        return self._current.loaded().read(status.status)

    def scopes(self) -> list[ScopeStatus]:
        """Return the scopes with the number of their documents, the largest scope first.

        Raises:
            ConfigurationError: the corpus is not scoped.
        """
        if not self.config.scoped:
            raise ConfigurationError(f'corpus "{self.name}" is not scoped')
        return ResultList(self._current.loaded().read(status.scopes))

    def activity(self) -> Activity:
        """Return the age of the oldest pending change, and the number of writes to the corpus so far."""
        return self._current.read(status.activity)

    def failures(self, last: int | None = None) -> list[Failure]:
        """Return the documents that were set aside because they could not be indexed, with reasons.

        Args:
            last: return only this number of documents, the latest ones.
        """
        checked = checked_count(last, "last")
        return ResultList(self._current.loaded().read(pending_log.failures, checked))

    def retry_failures(self) -> int:
        """Let workers try again to index what was set aside, and return the number of log entries."""
        return self._current.loaded().write(pending_log.retry_failures)

    def check(self, progress: Callable[[int], None] | bool | None = None) -> list[Problem]:
        """Check the integrity of the corpus: return every stored row that contradicts another row.

        An empty list means that the corpus is intact.

        Args:
            progress: True shows a bar; a function is called with the number of documents checked so far.

        Examples:
            >>> corpus.check()
            []
        """
        with showing(progress, "checking", "documents") as show:
            while True:
                # The catalog has no snapshot: a corpus that is rebuilt meanwhile seems to lack tables.
                try:
                    problems = self._current.read(check_corpus.check, show)
                except DatabaseError:
                    if not self._is_rebuilt():
                        raise
                    continue
                if not problems or not self._is_rebuilt():
                    return ResultList(problems)

    def _is_rebuilt(self) -> bool:
        """Return whether the corpus was rebuilt; False if its stored settings are damaged."""
        with suppress(RecipeError):
            return self._current.load()
        return False
