"""CheckedArguments: the store of a corpus, and the checks of arguments that many methods take."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from textsim_db.db.store import CurrentStore, Store
from textsim_db.errors import ConfigurationError, DocumentError, DocumentNotFound, MeasureError
from textsim_db.settings.check_values import check_count, check_threshold, several_items
from textsim_db.settings.corpus_settings import AUTO, CorpusConfig
from textsim_db.text.storable import Key, Scope, possible_key, stored_scope

if TYPE_CHECKING:
    from textsim_db.compare.match_rule import Criterion
    from textsim_db.sketch.ragged import Parts


class CheckedArguments:
    """The store of a corpus, and the checks of arguments that many methods take."""

    def __init__(self, store: Store) -> None:
        self._current = CurrentStore(store)

    @property
    def name(self) -> str:
        """The name of the corpus."""
        return self._current.store.corpus.name

    @property
    def config(self) -> CorpusConfig:
        """The settings of the corpus, which determine its signatures and buckets."""
        return self._current.store.corpus.config

    def _threshold(self, threshold: float | None) -> float:
        return self.config.threshold if threshold is None else check_threshold(threshold)

    def _search_threshold(self, threshold: float | None) -> float:
        checked = self._threshold(threshold)
        if self.config.is_exact and checked < self.config.threshold:
            raise ConfigurationError(
                f'threshold is {checked:g}; the exact corpus "{self.name}" finds every pair from '
                f"{self.config.threshold:g} on, but not below; to lower its threshold: "
                f"textsim rebuild {shlex.quote(self.name)} --threshold {checked:g}"
            )
        return checked

    def _key(self, key: Key) -> str:
        stored = possible_key(key)
        if stored is None:
            raise DocumentNotFound(f'corpus "{self.name}" has no document {key!r:.100}')
        return stored

    def _criterion(
        self, measure: str, threshold: float | None, language: str | None, part: int | None = None
    ) -> Criterion:
        from textsim_db.compare import match_rule
        from textsim_db.measures import by_name

        by = by_name.measure_of(measure)
        limit = self._language(language)
        if by is by_name.JACCARD:
            return match_rule.Criterion(by, self._search_threshold(threshold), limit, part)
        if threshold is None:
            raise MeasureError(
                f"{by.name} needs a threshold, because the threshold of the corpus is for jaccard"
            )
        return match_rule.Criterion(by, by.check_threshold(threshold), limit, part)

    def _scope(self, scope: Scope | None) -> str | None:
        self.config.check_scope(self.name, scope is not None)
        try:
            return None if scope is None else stored_scope(scope)
        except DocumentError as error:
            raise ConfigurationError(str(error)) from error

    def _part(self, scope: Scope | None) -> int | None:
        """Return the part of the corpus that a search looks at; None if the corpus has no parts."""
        from textsim_db.text.hashing import part_of_scope

        stored = self._scope(scope)
        return None if stored is None else part_of_scope(stored)

    def _part_of_pairs(self, scope: Scope | None) -> int | None:
        """Return the part that limits a list; None: all parts."""
        return None if scope is None else self._part(scope)

    def _parts(self, scope: Scope | Sequence[Scope] | None, count: int) -> Parts:
        """Return the part of each of several texts, or None if the corpus is not scoped."""
        from textsim_db.sketch.ragged import part_only
        from textsim_db.text.hashing import parts_of_scopes

        if scope is None or isinstance(scope, Scope):
            part = part_only(self._part(scope))
            return None if part is None else part.repeat(count)
        scopes = list(several_items(scope, "scope is one scope, or several such as [scope]"))
        if len(scopes) != count:
            raise ConfigurationError(
                f"there are {len(scopes)} scopes and {count} texts; expected a scope for each text"
            )
        return parts_of_scopes([str(self._scope(each)) for each in scopes])

    def _language(self, language: str | None) -> str | None:
        if language is None:
            return None
        if self.config.language is None:
            raise ConfigurationError(
                f'the languages of the documents of corpus "{self.name}" are not identified; '
                f'create a corpus with language="{AUTO}" to identify them'
            )
        from textsim_db.text.languages import check_language

        return check_language(language)


def checked_count(count: int | None, name: str) -> int | None:
    """Return the largest number of results, None for all; raises ConfigurationError.

    The server counts in four bytes, and no corpus has more documents.
    """
    return None if count is None else min(check_count(count, name, 1, 2**63 - 1), 2**31 - 1)
