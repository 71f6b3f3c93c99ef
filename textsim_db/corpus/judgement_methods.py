"""Judgements of people and models on two documents, and the pairs that wait for one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from textsim_db.corpus.arguments import CheckedArguments, checked_count
from textsim_db.errors import ConfigurationError
from textsim_db.files.arrow_frames import Results
from textsim_db.results import DoubtfulPair, Judgement
from textsim_db.settings.check_values import check_flag
from textsim_db.settings.named_values import VerdictName
from textsim_db.text.storable import Key, Scope
from textsim_db.write import judge_pairs


class JudgementMethods(CheckedArguments):
    """Methods that record, remove and list judgements."""

    def judge(
        self,
        a: Key,
        b: Key,
        verdict: VerdictName,
        note: str | None = None,
        *,
        replaces: VerdictName | None = None,
        source: str | None = None,
        confidence: float | None = None,
        any_text: bool = False,
    ) -> bool:
        """Record what a person or a model says of two documents, and return whether that was new.

        Tracked clusters obey it; clusters() and duplicates() do with `judgements=True`. The documents
        need not exist. A pair has one judgement. If the words of a document change later, it is stale:
        it stays and is listed, but nothing obeys it until the pair is judged again.

        Args:
            a: the key of one document.
            b: the key of the other document.
            verdict: whether both documents are the same for your purpose: `"same"`, `"different"` or
                `"unsure"`.
            note: why, or anything else: up to 10,000 bytes.
            replaces: the verdict of the stored judgement that this one replaces. So nobody replaces a
                judgement that they have not seen.
            source: the name of the person or model that judges, of up to 200 bytes. The role of the
                database is stored anyway.
            confidence: how sure that is, from 0 to 1.
            any_text: the judgement is about the keys, and holds whatever their texts become. It always
                does for a key without a document.

        Raises:
            JudgementExists: the pair was judged otherwise, or the note, source or confidence differs,
                and `replaces` is not the stored verdict.
            DocumentError: a key, the note or the source cannot be stored.
            ConfigurationError: the keys are equal, the verdict is unknown, or both documents exist and
                have different scopes.

        Examples:
            >>> corpus.judge("monday", "update", "different", note="one names the evening")
            True
            >>> list(corpus.clusters(judgements=True))
            []
        """
        hashes = (None, None) if check_flag(any_text, "any_text") else None
        judgement = judge_pairs.GivenJudgement(
            a, b, verdict, note, source, confidence, hashes, replaces
        )
        return bool(self._current.loaded().call(judge_pairs.judge, [judgement]))

    def _judge_many(
        self,
        judgements: Iterable[tuple[Any, ...]],
        replace: bool = False,
        place_of: Callable[[int], str] = "judgement {}".format,
    ) -> int:
        """Record several judgements, all or none, and return how many were new or replaced others.

        Each is (a, b, verdict), and if you like note, source, confidence and (hash_a, hash_b); by
        default the present texts are judged. place_of names the judgement with this number in errors.
        """
        judged = [
            _given_judgement(each, place_of(number)) for number, each in enumerate(judgements)
        ]
        return self._current.loaded().call(judge_pairs.judge, judged, replace, place_of)

    def unjudge(self, a: Key, b: Key) -> bool:
        """Remove the judgement of two documents, and return whether there was one.

        Raises:
            ConfigurationError: the keys are equal.

        Examples:
            >>> corpus.judge("monday", "update", "same")
            True
            >>> corpus.unjudge("update", "monday")
            True
        """
        return self._current.loaded().call(judge_pairs.unjudge, a, b)

    def doubtful(
        self, scope: Scope | None = None, max_results: int | None = 100, *, siblings: bool = False
    ) -> Results[DoubtfulPair]:
        """Return the matches that nobody has judged, best first, for a person or a model to look at.

        These are the matches of a unique corpus below its `unique_from`. A judgement takes a pair off
        the list. If the corpus is tracked at its threshold, the stored matches are read, as of the last
        update; otherwise, and for siblings, they are the pairs of pairs().

        Args:
            scope: only pairs of this scope. By default the pairs of all scopes.
            max_results: the largest number of pairs; None returns all.
            siblings: also list matches whose guards differ.

        Examples:
            >>> offers = db.create_corpus("offers", threshold=0.6, is_unique=True, unique_from=0.9)
            >>> offers.add("a", "The city council approved the new budget for schools.").added
            1
            >>> offers.add("b", "The city council approved the new budget for schools today.").added
            1
            >>> list(offers.doubtful())
            [DoubtfulPair(a='a', b='b', similarity=0.875, differs=())]
        """
        most = checked_count(max_results, "max_results")
        limits = None if scope is None else self._scope(scope), most, siblings
        return Results(
            DoubtfulPair, partial(self._current.loaded().stream, judge_pairs.doubtful, *limits)
        )

    def judgements(self) -> Results[Judgement]:
        """Return the judgements of the corpus, in the order of their keys."""
        return Results(Judgement, partial(self._current.loaded().stream, judge_pairs.judgements))


def _given_judgement(judgement: Any, place: str) -> judge_pairs.GivenJudgement:
    # A str of three characters could be unpacked, too.
    if not isinstance(judgement, tuple | list) or not 3 <= len(judgement) <= 7:
        raise ConfigurationError(
            f"{place} is {judgement!r:.100}; expected (a, b, verdict), and if you like note, source and "
            "confidence"
        )
    return judge_pairs.GivenJudgement(*judgement)
