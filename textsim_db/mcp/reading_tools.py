"""The tools that search, and what all tools share: their arguments, the scope, and rows of matches.

No argument names the scope. Each key that a model names is looked up in the scope first (`own`), and so
is each key whose text is shown (`texts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import Annotated

from pydantic import Field

from textsim_db.corpus import Corpus
from textsim_db.errors import DocumentError, DocumentNotFound
from textsim_db.mcp.answers import JsonObject, differing_words, fitted
from textsim_db.measures.word_diff import ShownText, differences, tokens
from textsim_db.results import Distinct, Match
from textsim_db.results.shown_values import shown
from textsim_db.sync.read_source import shown_texts
from textsim_db.text.storable import possible_key

MOST_CHARACTERS_OF_TEXT = 1_000_000
"""A longer text is refused before anything computes."""
_LONGEST_KEY = 1_000
_MATCHES_PER_RESULT = 4
"""How many matches a search reads for each result; if most are copies, it searches again for more."""
_MOST_MATCHES = 1_000
"""A search reads at most this many matches."""
_COPIES_SHOWN = 10
SearchedText = Annotated[
    str, Field(description="the text to compare", max_length=MOST_CHARACTERS_OF_TEXT)
]
DocumentKey = Annotated[
    str,
    Field(description="the key of a document, as another answer names it", max_length=_LONGEST_KEY),
]
MostRows = Annotated[int, Field(description="the largest number of results", ge=1, le=100)]
MostBytes = Annotated[
    int,
    Field(
        description="the size of the answer; texts are cut to fit, and the last results are left out",
        ge=500,
        le=1_000_000,
    ),
]


class ReadingTools:
    """The tools that search one scope of a corpus; threads may call them at once."""

    def __init__(self, corpus: Corpus, scope: str | None) -> None:
        """Raise ConfigurationError if the corpus is scoped and no scope is given, or the reverse."""
        self.corpus = corpus
        self.scope = corpus._scope(scope)

    def search(
        self,
        text: SearchedText,
        k: MostRows = 5,
        max_bytes: MostBytes = 4_000,
        copies: Annotated[bool, Field(description="return copies of better matches, too")] = False,
    ) -> str:
        """Return the documents with the most similar words, best first, without copies.

        It compares words, not meanings: search with the words that the document may have. Each match has
        its similarity, from 0 to 1, in `differs` the words that only one of the two has, and in `copies`
        keys of documents with nearly the same words, at most ten.
        """
        not_blank(text)
        if copies:
            rows = self.rows(self.best(text, k), text)
            return fitted({"matches": rows}, "matches", max_bytes)
        matches, results = self._distinct_matches(text, k)
        rows = self.rows([matches[result.rank - 1] for result in results], text)
        copies_of = {result.key: result.copies[:_COPIES_SHOWN] for result in results}
        rows = [{**row, "copies": copies_of[row["key"]]} for row in rows]
        return fitted({"matches": rows}, "matches", max_bytes)

    def best(self, text: str, count: int) -> list[Match]:
        if self.corpus.config.is_exact:
            return self.corpus.nearest(text, count, scope=self.scope)
        return self.corpus.query(text, max_results=count, scope=self.scope)

    def _distinct_matches(self, text: str, k: int) -> tuple[list[Match], list[Distinct[str]]]:
        """Return the best matches, and the first k of them without copies."""
        count = _MATCHES_PER_RESULT * k
        while True:
            matches = self.best(text, count)
            keys = [match.key for match in matches]
            results = [Distinct(key, 1, ()) for key in keys]
            if len(keys) > 1:
                results = self.corpus.distinct(keys, k, missing="keep")
            if len(results) == k or len(matches) < count or count >= _MOST_MATCHES:
                return matches, results
            count *= _MATCHES_PER_RESULT

    def passages(self, text: SearchedText, k: MostRows = 10, max_bytes: MostBytes = 4_000) -> str:
        """Return the runs of words that a text shares with documents, the longest first."""
        passages = self.corpus.passages(text, max_results=k, scope=self.scope)
        own = self.texts([each.key for each in passages])
        rows = [
            {"key": each.key, "words": each.words, "text": text[each.start : each.end]}
            for each in passages
            if each.key in own
        ]
        return fitted({"passages": rows}, "passages", max_bytes)

    def verify_quote(
        self,
        text: Annotated[str, Field(description="the words that you quote", max_length=20_000)],
        key: Annotated[
            str,
            Field(description="the document that you quote; any if empty", max_length=_LONGEST_KEY),
        ] = "",
        max_bytes: MostBytes = 4_000,
    ) -> str:
        """Say whether a quotation stands in a document word for word; call it before you quote.

        verdict: `exact`; `pieces`: it stands there in order, with omissions; `altered`: quote the words
        of the document instead; `absent`: do not quote it. `differences` has the words that differ and
        those left out, with kinds such as negations, numbers and symbols: they may change the meaning.
        """
        corpus, scope = self.corpus, self.scope
        verdict = corpus.quote(not_blank(text), key or None, scope)
        # The signs are compared with the text of the row, unless its words have changed since.
        for shown_text in self.texts(
            [verdict.key] if isinstance(verdict.key, str) else []
        ).values():
            if shown_text.is_original:
                with suppress(DocumentError):
                    verdict = corpus.quote(text, verdict.key, scope, original=shown_text.text)
        rows = [
            {"quotation": own, "document": theirs, "kinds": ", ".join(kinds)}
            for own, theirs, kinds in verdict.shown_differences()
        ]
        answer: JsonObject = {
            "verdict": verdict.verdict,
            "key": verdict.key,
            "share": verdict.share,
        }
        if verdict.verdict == "absent" and not key:
            units = f"{corpus.config.passages} {corpus.config.shingle.noun}s"
            answer["note"] = f"only documents with {units} of it in a row were compared: name a key"
        return fitted({**answer, "differences": rows}, "differences", max_bytes)

    def compare(self, a: DocumentKey, b: DocumentKey, max_bytes: MostBytes = 4_000) -> str:
        """Compare two documents: their similarity, and the words that only one of them has.

        `only` names the kinds of words if they differ in nothing else, such as numbers: then both may be
        needed. `guards` has what keeps the two from being merged.
        """
        own = self.own([a, b])
        explanation = self.corpus.explain(a, b)
        guards = {
            guard: {"a": ", ".join(one), "b": ", ".join(other)}
            for guard, (one, other) in explanation.guards.items()
        }
        answer = {
            "similarity": explanation.measures["jaccard"],
            "a": a,
            "b": b,
            "text_a": own[a].text,
            "text_b": own[b].text,
            **differing_words(explanation.diff, explanation.distinctions, "a", "b"),
            "guards": guards,
        }
        return fitted(answer, "", max_bytes)

    def doubtful(self, k: MostRows = 10, max_bytes: MostBytes = 4_000) -> str:
        """Return pairs of similar documents that nobody has judged, the most similar first.

        Read both texts, and call `judge`.
        """
        pairs = list(islice(self.corpus.doubtful(self.scope, k), k))
        texts = self.texts([key for pair in pairs for key in pair[:2]])
        rows = []
        for a, b, similarity, guards in pairs:
            if a in texts and b in texts:
                apart = differences(texts[a].words(), texts[b].words())
                row = {"a": a, "b": b, "similarity": similarity, "guards": ", ".join(guards)}
                row |= {"text_a": texts[a].text, "text_b": texts[b].text}
                rows.append(row | differing_words(*apart, "a", "b"))
        return fitted({"pairs": rows}, "pairs", max_bytes)

    def status(self) -> str:
        """Return how many documents there are, and which settings compare them."""
        corpus, config = self.corpus, self.corpus.config
        answer: JsonObject = {"corpus": corpus.name, "scope": self.scope}
        if self.scope is None:
            state = corpus.status()
            answer |= {"documents": state.indexed, "pending": state.pending}
        else:
            answer["documents"] = sum(each.indexed for each in corpus.scopes(self.scope))
        answer |= {"shingle": str(config.shingle), "threshold": config.threshold}
        answer |= {"is_unique": config.is_unique, "unique_from": config.unique_from}
        answer |= {
            "guards": ", ".join(config.guards),
            "passages": config.passages,
            "keep_for": config.keep_for,
        }
        return fitted(answer, "", 4_000)

    def rows(
        self, matches: Sequence[Match], text: str, threshold: float | None = None
    ) -> list[JsonObject]:
        """Return a row for each match; from the threshold on, it has what differs."""
        texts = self.texts([match.key for match in matches])
        threshold = self.corpus.config.threshold if threshold is None else threshold
        searched = tokens(text)
        rows = []
        for match in matches:
            if match.key not in texts:  # removed meanwhile
                continue
            row: JsonObject = {"key": match.key, "similarity": match.similarity}
            row["text"] = texts[match.key].text
            if match.similarity >= threshold:  # nearest() returns others, too
                apart = differences(texts[match.key].words(), searched)
                row |= differing_words(*apart, "stored", "yours")
                row["guards"] = ", ".join(match.differs)
            rows.append(row)
        return rows

    def own(self, keys: list[str]) -> dict[str, ShownText]:
        """Return the texts of documents; raises DocumentNotFound if one is not in the scope."""
        texts = self.texts(keys)
        for key in keys:
            if key not in texts:
                raise DocumentNotFound(
                    f'there is no document "{shown(key[:100])}"; other tools name the keys'
                )
        return texts

    def texts(self, keys: list[str]) -> dict[str, ShownText]:
        keys = [key for key in keys if possible_key(key) is not None]
        if not keys:
            return {}
        return self.corpus._current.call(shown_texts, keys, self.corpus._part(self.scope))


def not_blank(text: str) -> str:
    """Return a text; raises DocumentError if it is blank, because a blank document matches nothing."""
    if not text.strip():
        raise DocumentError("the text is empty: give the words to compare")
    return text
