"""The tools: each calls one method of a corpus, and shows of the result what a model needs.

Here are those that write, and the one that says what a write would do; ReadingTools has the others. A
tool is a method, whose docstring and annotations the model reads; `fitted` makes its answer small.
Unknown arguments are refused, because a model that names a scope must not believe that it was obeyed.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Literal

from pydantic import Field

from textsim_db.errors import DocumentNotFound
from textsim_db.mcp.answers import JsonObject, fitted
from textsim_db.mcp.reading_tools import (
    MOST_CHARACTERS_OF_TEXT,
    DocumentKey,
    MostBytes,
    ReadingTools,
    SearchedText,
    not_blank,
)
from textsim_db.read import search
from textsim_db.results import Answer, Match, Outcome
from textsim_db.write.prepare_batches import prepare

_RANDOM_BYTES = 10
"""The random bytes of a new key: two of a trillion keys are equal with a probability of 0.4."""
_OTHERWISE = "see differs: if it means something else, remember it with force"
_NEAREST_SHARE = 0.5
"""The nearest text is shown if its similarity is this share of the threshold; others are noise."""
_EQUAL_WORDS = (
    "the words are stored already, in this order, whatever force says: if a sign differs, write it as "
    "a word"
)


class CorpusTools(ReadingTools):
    """The tools of one scope of a corpus; threads may call them at once."""

    @property
    def reading(self) -> list[Callable[..., str]]:
        return [
            self.check_before_write,
            self.search,
            self.passages,
            self.verify_quote,
            self.compare,
            self.doubtful,
            self.status,
        ]

    @property
    def writing(self) -> list[Callable[..., str]]:
        return [self.remember, self.judge, self.forget]

    def check_before_write(self, text: SearchedText, max_bytes: MostBytes = 4_000) -> str:
        """Say what `remember` would do with a text, and write nothing.

        outcome: `new`: no match, and `nearest` may have a less similar text that this one replaces;
        `twin`: a stored text has nearly the same words (with the guard content all except fillers), and
        may mean something else; `doubtful`: compare it with the matches, and judge; `sibling`: similar,
        but numbers, negations or other guarded words differ, so both are kept; `rejected`: a person has
        rejected such a text, and `note` says why. Each match says in
        `differs` which words only one of the two has.
        """
        from textsim_db.compare.match_rule import is_match

        corpus = self.corpus
        candidates, reason = self._matches(not_blank(text))
        threshold = corpus.config.threshold
        matches = [each for each in candidates if is_match(each.similarity, threshold)]
        same = [each for each in matches if not each.differs]
        outcome = Outcome.NEW
        if reason is not None:
            return fitted({"outcome": Outcome.REJECTED, "note": reason}, "", max_bytes)
        if same:
            is_twin = is_match(same[0].similarity, corpus.config.twins_from)
            outcome = Outcome.TWIN if is_twin else Outcome.DOUBTFUL
        elif matches:
            outcome = Outcome.SIBLING
        answer = {"outcome": outcome, "matches": self.rows(matches[:10], text)}
        return self._fitted(answer, text, max_bytes, candidates[:1])

    def remember(
        self,
        text: Annotated[
            str, Field(description="one fact or text", max_length=MOST_CHARACTERS_OF_TEXT)
        ],
        replaces: Annotated[
            str, Field(description="the key of the document whose text it replaces; none if empty")
        ] = "",
        force: Annotated[
            bool,
            Field(description="store it beside a twin that means something else, in other words"),
        ] = False,
        max_bytes: MostBytes = 4_000,
    ) -> str:
        """Store a text once, unless it is stored already, and return the outcome and the key.

        outcome: `new`: if it replaces the text of `nearest`, forget that one; `twin`: not stored,
        because a match has nearly the same words, whose key is returned; `doubtful`: stored beside
        matches: compare them, and call `judge`; `sibling`: stored beside matches whose numbers,
        negations or other guarded words differ; `unchanged`; `rejected`: not stored, because a person
        has rejected such a text: `note` says why. If a twin means something else, see its `differs`, and
        call again with force. Only words are stored, without signs such as > and the point of .5: if a
        twin has equal words in the same order, write such a sign as a word.
        """
        key = replaces or secrets.token_hex(_RANDOM_BYTES)
        if replaces:
            self.own([replaces])
        force = force and self._matches(text)[1] is None
        answer = self.corpus.add_unique(key, not_blank(text), self.scope, force=force)
        if force and answer.outcome is Outcome.TWIN and not self._has_words(answer, text):
            # Equal shingles in another order; force alone takes them for a copy.
            answer = self.corpus.add_unique(key, text, self.scope, unique_from=math.inf)
        matches = self.rows(answer.matches, text)
        row = {
            "outcome": answer.outcome,
            "is_stored": answer.is_stored,
            "key": key if answer.is_stored else answer.matches[0].key,
            "note": answer.reason,
            "matches": matches,
        }
        if force and answer.outcome is Outcome.TWIN:
            row["note"] = _EQUAL_WORDS
        near = self.best(text, 2) if answer.outcome is Outcome.NEW else []
        return self._fitted(row, text, max_bytes, [each for each in near if each.key != key][:1])

    def judge(
        self,
        a: DocumentKey,
        b: DocumentKey,
        verdict: Annotated[
            Literal["same", "different", "unsure"], Field(description="what both documents are")
        ],
        note: Annotated[str, Field(description="why", max_length=2_000)] = "",
        replaces: Annotated[
            Literal["", "same", "different", "unsure"],
            Field(description="the verdict of the judgement that this one replaces"),
        ] = "",
    ) -> str:
        """Record whether two documents mean the same.

        Two that are different never keep each other out. Of two that are the same, forget one.
        """
        self.own([a, b])
        is_new = self.corpus.judge(
            a, b, verdict, note or None, replaces=replaces or None, source="textsim mcp"
        )
        return fitted({"a": a, "b": b, "verdict": verdict, "is_new": is_new}, "", 4_000)

    def forget(
        self, keys: Annotated[list[DocumentKey], Field(min_length=1, max_length=100)]
    ) -> str:
        """Remove documents for good, with their judgements.

        All of the keys must exist, or nothing is removed.
        """
        self.own(keys)
        report = self.corpus.forget(keys, later=True)
        answer: JsonObject = {"documents": report.documents, "judgements": report.judgements}
        if report.has_words:
            answer["note"] = "the words stay on disk until the next textsim rebuild"
        return fitted(answer, "", 4_000)

    def _fitted(self, answer: JsonObject, text: str, most: int, others: list[Match]) -> str:
        """Return the outcome of a write, with the nearest text of a new one, and advice about a twin.

        others: the nearest document of a new text, if one is found.
        """
        differing = [any(row.get("differs", {}).values()) for row in answer["matches"]]
        if answer["outcome"] is Outcome.TWIN and any(differing) and not answer.get("note"):
            answer["otherwise"] = _OTHERWISE
        if answer["outcome"] is not Outcome.NEW:
            return fitted(answer, "matches", most)
        least = _NEAREST_SHARE * self.corpus.config.threshold
        near = self.rows([each for each in others if each.similarity >= least], text, least)
        return fitted({**answer, "nearest": near} if near else answer, "nearest", most)

    def _matches(self, text: str) -> tuple[list[Match], str | None]:
        """Return what matches_and_rejection() of a search does."""
        part = self.corpus._part(self.scope)
        return self.corpus._current.checked().search(search.matches_and_rejection, text, part)

    def _has_words(self, answer: Answer, text: str) -> bool:
        """Return whether a match has the words of a text in their order, so that it is a copy."""
        document = (answer.matches[0].key, text)
        scoped = document if self.scope is None else (*document, self.scope)
        form = prepare([scoped], self.corpus.config).form_of(0)
        for match in answer.matches:
            with suppress(DocumentNotFound):  # removed meanwhile
                if self.corpus.normal_form(match.key) == form:
                    return True
        return False
