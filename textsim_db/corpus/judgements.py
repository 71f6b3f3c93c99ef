"""Judgements: what people say of two documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from textsim_db.corpus.arguments import CheckedArguments
from textsim_db.frames.arrow_results import Results
from textsim_db.lazy_imports import lazy
from textsim_db.results import Contradiction, Judgement
from textsim_db.write.document_inputs import Key

if TYPE_CHECKING:
    from textsim_db.read import judgements
    from textsim_db.write import judge_pairs
else:
    judge_pairs = lazy("textsim_db.write.judge_pairs", globals())
    judgements = lazy("textsim_db.read.judgements", globals())


class JudgementMethods(CheckedArguments):
    """Methods that record and list judgements."""

    def judge(
        self, a: Key, b: Key, verdict: str, note: str | None = None, *, replaces: str | None = None
    ) -> bool:
        """Record what a person says of two documents, and return whether that was new.

        Tracked clusters obey it; clusters() and duplicates() do with `judgements=True`. The documents
        need not exist; the judgement stays when they change or are removed. A pair has one judgement.

        Args:
            a: the key of one document.
            b: the key of the other document.
            verdict: `"same"`, `"different"` or `"unsure"`.
            note: why, or anything else: up to 10,000 bytes.
            replaces: the verdict of the stored judgement that this one replaces. So nobody replaces a
                judgement that they have not seen.

        Raises:
            JudgementExists: the pair was judged otherwise, or the note differs, and `replaces` is not
                the stored verdict.
            DocumentError: a key or the note cannot be stored.
            ConfigurationError: the keys are equal, the verdict is unknown, or both documents exist and
                have different scopes.

        Examples:
            >>> corpus.judge("monday", "update", "different", note="one names the evening")
            True
            >>> list(corpus.clusters(judgements=True))
            []
        """
        given = judge_pairs.GivenJudgement(a, b, verdict, note, replaces)
        return bool(self._current.loaded().read(judge_pairs.judge, [given]))

    def judge_many(
        self,
        judgements: Iterable[tuple[Key, Key, str] | tuple[Key, Key, str, str | None]],
        replace: bool = False,
        place_of: Callable[[int], str] | None = None,
    ) -> int:
        """Record several judgements, all or none, and return how many were new or replaced others.

        Args:
            judgements: (a, b, verdict) or (a, b, verdict, note), as in judge().
            replace: replace stored judgements that have another verdict or note.
            place_of: names the judgement with this number, from 0 on, in the message of an error.

        Raises:
            JudgementExists: as judge(), without `replace`.
            DocumentError: as judge().
            ConfigurationError: as judge().

        Examples:
            >>> corpus.judge_many([("monday", "recipe", "different"), ("update", "recipe", "unsure")])
            2
            >>> [(judgement.a, judgement.verdict) for judgement in corpus.judgements()]
            [('monday', 'different'), ('recipe', 'unsure')]
        """
        given = [judge_pairs.GivenJudgement(*judgement) for judgement in judgements]
        names = place_of or "judgement {}".format
        return self._current.loaded().read(judge_pairs.judge, given, replace, names)

    def unjudge(self, a: Key, b: Key) -> bool:
        """Remove the judgement of two documents, and return whether there was one.

        Raises:
            DocumentError: a key is none that a document can have.
            ConfigurationError: the keys are equal.

        Examples:
            >>> corpus.judge("monday", "update", "same")
            True
            >>> corpus.unjudge("update", "monday")
            True
        """
        return self._current.loaded().read(judge_pairs.unjudge, a, b)

    def judgements(self) -> Results[Judgement]:
        """Return the judgements of the corpus, in the order of their keys."""
        return Results(Judgement, partial(self._current.loaded().stream, judgements.judgements))

    def contradictions(self) -> Results[Contradiction]:
        """Return the pairs that were judged different although they are the same by other judgements.

        A chain of pairs judged the same connects them. Until one of these judgements is replaced or
        removed, clusters() and duplicates() obey the verdict "different", and none of the same
        verdicts of these documents and of those connected with them.
        """
        return Results(
            Contradiction, partial(self._current.loaded().stream, judgements.contradictions)
        )
