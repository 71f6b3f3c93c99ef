"""Rebuild and drop a corpus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from textsim_db.corpus.arguments import CheckedArguments
from textsim_db.db import stored_corpus
from textsim_db.errors import suggest_settings
from textsim_db.lazy_imports import lazy
from textsim_db.progress_bar import showing
from textsim_db.settings import CHANGEABLE, Settings

if TYPE_CHECKING:
    from textsim_db.write import alter_settings, learn_from_sample, rebuild
else:
    alter_settings = lazy("textsim_db.write.alter_settings", globals())
    learn_from_sample = lazy("textsim_db.write.learn_from_sample", globals())
    rebuild = lazy("textsim_db.write.rebuild", globals())


class RebuildMethods(CheckedArguments):
    """Methods that build a corpus anew or remove it."""

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

        If no stored row depends on the new settings, only the settings are stored. Examples are
        `is_unique=False`, and another threshold or recall with the same bands and rows. Other Corpus
        objects use these settings when they are opened again. Without any setting the corpus is built
        with the old settings, and its documents get ids from 1 on.

        Args:
            progress: True shows a bar; a function is called with the number of documents copied so far,
                and the number to copy.
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
        config = self._current.loaded().store.corpus.config
        changed = config.changed(**settings)
        has_settings = any(value is not None for value in settings.values())
        is_known = has_settings and not changed.learns_boilerplate
        if is_known and self._current.read(alter_settings.is_enough, changed):
            if changed != config:
                self._current.write(alter_settings.alter, changed)
                self._current.load()
            return False
        changed = self._current.write(learn_from_sample.learn_from_corpus, changed)
        with showing(progress, "rebuilding", "documents") as show:
            rebuilt = self._current.write(rebuild.rebuild, changed, show)
        self._current.store = replace(self._current.store, corpus=rebuilt)
        return True

    def drop(self) -> None:
        """Remove the corpus with all its documents.

        Raises:
            CorpusNotFound: the corpus was removed already.
            ConfigurationError: a view depends on the corpus.
        """
        store = self._current.loaded().store
        stored_corpus.drop(store.engine, store.corpus)
