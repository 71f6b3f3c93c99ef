"""The tools: each calls one method of a corpus, and shows of the result what a model needs.

No argument names the scope. Each key that a model names is looked up in the scope first (`_own`), and so
is each key whose text is shown (`_texts`). A tool is a method, whose docstring and annotations the model
reads; `fitted` makes its answer small. Unknown arguments are refused, because a model that names a scope
must not believe that it was obeyed.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from textsim_db.corpus import Corpus
from textsim_db.errors import ConfigurationError, DocumentError, DocumentNotFound, shown
from textsim_db.measures.word_diff import Change, DiffRun, ShownText, differences, tokens
from textsim_db.read import search
from textsim_db.results import Answer, Distinct, Match, Outcome
from textsim_db.sync.read_source import shown_texts
from textsim_db.text.storable import possible_key
from textsim_db.write.prepare_batches import prepare

MOST_CHARACTERS_OF_TEXT = 1_000_000
"""A longer text is refused before anything computes."""
_LONGEST_KEY = 1_000
_RANDOM_BYTES = 10
"""The random bytes of a new key: two of a trillion keys are equal with a probability of 0.4."""
_MATCHES_PER_RESULT = 4
"""How many matches a search reads for each result; if most are copies, it searches again for more."""
_MOST_MATCHES = 1_000
"""A search reads at most this many matches."""
_COPIES_SHOWN = 10
_LENGTHS = (2_000, 1_000, 500, 200, 100, 50)
"""The lengths to which long texts are cut, one after the other, until an answer is small enough."""

_KEYS = ("key", "a", "b", "copies")
_OTHERWISE = "see differs: if it means something else, remember it with force"
_NEAREST_SHARE = 0.5
"""The nearest text is shown if its similarity is this share of the threshold; others are noise."""
_EQUAL_WORDS = (
    "the words are stored already, in this order, whatever force says: if a sign differs, write it as "
    "a word"
)

JsonObject: TypeAlias = dict[str, Any]
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


class CorpusTools:
    """The tools of one scope of a corpus; threads may call them at once."""

    def __init__(self, corpus: Corpus, scope: str | None) -> None:
        """Raise ConfigurationError if the corpus is scoped and no scope is given, or the reverse."""
        self._corpus = corpus
        self._scope = corpus._scope(scope)

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

        corpus = self._corpus
        matches, reason = self._matches(_written(text))
        same = [each for each in matches if not each.differs]
        outcome = Outcome.NEW
        if reason is not None:
            return fitted({"outcome": Outcome.REJECTED, "note": reason}, "", max_bytes)
        if same:
            is_twin = is_match(same[0].similarity, corpus.config.twins_from)
            outcome = Outcome.TWIN if is_twin else Outcome.DOUBTFUL
        elif matches:
            outcome = Outcome.SIBLING
        answer = {"outcome": outcome, "matches": self._rows(matches[:10], text)}
        return self._fitted(answer, text, max_bytes)

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
        _written(text)
        if copies:
            rows = self._rows(self._best(text, k), text)
            return fitted({"matches": rows}, "matches", max_bytes)
        matches, results = self._distinct_matches(text, k)
        rows = self._rows([matches[result.rank - 1] for result in results], text)
        copies_of = {result.key: result.copies[:_COPIES_SHOWN] for result in results}
        rows = [{**row, "copies": copies_of[row["key"]]} for row in rows]
        return fitted({"matches": rows}, "matches", max_bytes)

    def _best(self, text: str, count: int) -> list[Match]:
        if self._corpus.config.is_exact:
            return self._corpus.nearest(text, count, scope=self._scope)
        return self._corpus.query(text, max_results=count, scope=self._scope)

    def _distinct_matches(self, text: str, k: int) -> tuple[list[Match], list[Distinct[str]]]:
        """Return the best matches, and the first k of them without copies."""
        count = _MATCHES_PER_RESULT * k
        while True:
            matches = self._best(text, count)
            keys = [match.key for match in matches]
            results = self._corpus.distinct(keys, k, missing="keep")
            if len(results) == k or len(matches) < count or count >= _MOST_MATCHES:
                return matches, results
            count *= _MATCHES_PER_RESULT

    def passages(self, text: SearchedText, k: MostRows = 10, max_bytes: MostBytes = 4_000) -> str:
        """Return the runs of words that a text shares with documents, the longest first."""
        passages = self._corpus.passages(text, max_results=k, scope=self._scope)
        own = self._texts([each.key for each in passages])
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
        corpus, scope = self._corpus, self._scope
        verdict = corpus.quote(_written(text), key or None, scope)
        # The signs are compared with the text of the row, unless its words have changed since.
        for shown_text in self._texts(
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
        own = self._own([a, b])
        explanation = self._corpus.explain(a, b)
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
            **_differs(explanation.diff, explanation.distinctions, "a", "b"),
            "guards": guards,
        }
        return fitted(answer, "", max_bytes)

    def doubtful(self, k: MostRows = 10, max_bytes: MostBytes = 4_000) -> str:
        """Return pairs of similar documents that nobody has judged, the most similar first.

        Read both texts, and call `judge`.
        """
        pairs = list(islice(self._corpus.doubtful(self._scope, k), k))
        texts = self._texts([key for pair in pairs for key in pair[:2]])
        rows = []
        for a, b, similarity, guards in pairs:
            if a in texts and b in texts:
                apart = differences(texts[a].words(), texts[b].words())
                row = {"a": a, "b": b, "similarity": similarity, "guards": ", ".join(guards)}
                row |= {"text_a": texts[a].text, "text_b": texts[b].text}
                rows.append(row | _differs(*apart, "a", "b"))
        return fitted({"pairs": rows}, "pairs", max_bytes)

    def status(self) -> str:
        """Return how many documents there are, and which settings compare them."""
        corpus, config = self._corpus, self._corpus.config
        answer: JsonObject = {"corpus": corpus.name, "scope": self._scope}
        if self._scope is None:
            state = corpus.status()
            answer |= {"documents": state.indexed, "pending": state.pending}
        else:
            answer["documents"] = sum(each.indexed for each in corpus.scopes(self._scope))
        answer |= {"shingle": str(config.shingle), "threshold": config.threshold}
        answer |= {"is_unique": config.is_unique, "unique_from": config.unique_from}
        answer |= {
            "guards": ", ".join(config.guards),
            "passages": config.passages,
            "keep_for": config.keep_for,
        }
        return fitted(answer, "", 4_000)

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
            self._own([replaces])
        force = force and self._matches(text)[1] is None
        answer = self._corpus.add_unique(key, _written(text), self._scope, force=force)
        if force and answer.outcome is Outcome.TWIN and not self._has_words(answer, text):
            # Equal shingles in another order; force alone takes them for a copy.
            answer = self._corpus.add_unique(key, text, self._scope, unique_from=math.inf)
        matches = self._rows(answer.matches, text)
        row = {
            "outcome": answer.outcome,
            "is_stored": answer.is_stored,
            "key": key if answer.is_stored else answer.matches[0].key,
            "note": answer.reason,
            "matches": matches,
        }
        if force and answer.outcome is Outcome.TWIN:
            row["note"] = _EQUAL_WORDS
        return self._fitted(row, text, max_bytes)

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
        self._own([a, b])
        is_new = self._corpus.judge(
            a, b, verdict, note or None, replaces=replaces or None, source="textsim mcp"
        )
        return fitted({"a": a, "b": b, "verdict": verdict, "is_new": is_new}, "", 4_000)

    def forget(
        self, keys: Annotated[list[DocumentKey], Field(min_length=1, max_length=100)]
    ) -> str:
        """Remove documents for good, with their judgements.

        All of the keys must exist, or nothing is removed.
        """
        self._own(keys)
        report = self._corpus.forget(keys, later=True)
        answer: JsonObject = {"documents": report.documents, "judgements": report.judgements}
        if report.has_words:
            answer["note"] = "the words stay on disk until the next textsim rebuild"
        return fitted(answer, "", 4_000)

    def _fitted(self, answer: JsonObject, text: str, most: int) -> str:
        """Return the outcome of a write, with the nearest text of a new one, and advice about a twin."""
        differing = [any(row.get("differs", {}).values()) for row in answer["matches"]]
        if answer["outcome"] is Outcome.TWIN and any(differing) and not answer.get("note"):
            answer["otherwise"] = _OTHERWISE
        if answer["outcome"] is not Outcome.NEW:
            return fitted(answer, "matches", most)
        least = _NEAREST_SHARE * self._corpus.config.threshold
        others = [each for each in self._best(text, 2) if each.key != answer.get("key")]
        near = self._rows([each for each in others[:1] if each.similarity >= least], text, least)
        return fitted({**answer, "nearest": near} if near else answer, "nearest", most)

    def _rows(
        self, matches: Sequence[Match], text: str, threshold: float | None = None
    ) -> list[JsonObject]:
        """threshold: the similarity from which rows show what differs, by default the corpus's own."""
        texts = self._texts([match.key for match in matches])
        threshold = self._corpus.config.threshold if threshold is None else threshold
        searched = tokens(text)
        rows = []
        for match in matches:
            if match.key not in texts:  # removed meanwhile
                continue
            row: JsonObject = {"key": match.key, "similarity": match.similarity}
            row["text"] = texts[match.key].text
            if match.similarity >= threshold:  # nearest() returns others, too
                apart = differences(texts[match.key].words(), searched)
                row |= _differs(*apart, "stored", "yours")
                row["guards"] = ", ".join(match.differs)
            rows.append(row)
        return rows

    def _matches(self, text: str) -> tuple[list[Match], str | None]:
        """Return the matches of a text, and why it was rejected; None: it was not."""
        part = self._corpus._part(self._scope)
        return self._corpus._current.compute(search.matches_and_rejection, text, part)

    def _has_words(self, answer: Answer, text: str) -> bool:
        """Return whether a match has the words of a text in their order, so that it is a copy."""
        document = (answer.matches[0].key, text)
        scoped = document if self._scope is None else (*document, self._scope)
        form = prepare([scoped], self._corpus.config).form_of(0)
        for match in answer.matches:
            with suppress(DocumentNotFound):  # removed meanwhile
                if self._corpus.normal_form(match.key) == form:
                    return True
        return False

    def _own(self, keys: list[str]) -> dict[str, ShownText]:
        """Return the texts of documents; raises DocumentNotFound if one is not in the scope."""
        texts = self._texts(keys)
        for key in keys:
            if key not in texts:
                raise DocumentNotFound(
                    f'there is no document "{shown(key[:100])}"; other tools name the keys'
                )
        return texts

    def _texts(self, keys: list[str]) -> dict[str, ShownText]:
        keys = [key for key in keys if possible_key(key) is not None]
        if not keys:
            return {}
        part = self._corpus._part(self._scope)
        return self._corpus._current.call(shown_texts, keys, part)


def _written(text: str) -> str:
    """Return a text; raises DocumentError if it is blank, because a blank document matches nothing."""
    if not text.strip():
        raise DocumentError("the text is empty: give the words to compare")
    return text


def _differs(diff: Sequence[DiffRun], kinds: Sequence[str], left: str, right: str) -> JsonObject:
    """Return the words that one of two texts has alone, by the names of both."""
    changed = [run for run in diff if run.change is not Change.SAME]
    sides = {
        left: [run.a.strip() for run in changed],
        right: [run.b.strip() for run in changed],
    }
    words = {name: " / ".join(filter(None, side)) for name, side in sides.items()}
    return {"differs": words, "only": ", ".join(kinds)}


def fitted(answer: JsonObject, rows: str, most: int) -> str:
    """Return an answer as JSON of at most this many bytes, and say what it leaves out.

    rows: the member with the list of results. Texts are cut first, then the last results are left out.
    """
    text = _dump(answer)
    for length in _LENGTHS:
        if len(text.encode()) <= most:
            return text
        kept = _cut(answer, length)
        kept["cut"] = f"texts are cut at {length} characters; max_bytes gives more"
        text = _dump(kept)
    while len(text.encode()) > most and kept.get(rows):
        kept[rows].pop()
        kept["left_out"] = len(answer[rows]) - len(kept[rows])
        text = _dump(kept)
    if len(text.encode()) > most:
        raise ConfigurationError(f"the answer is longer than {most} bytes; raise max_bytes")
    return text


def _cut(value: Any, length: int) -> Any:
    """Return a value with its longer texts cut, except keys, which other tools take."""
    if isinstance(value, dict):
        return {name: each if name in _KEYS else _cut(each, length) for name, each in value.items()}
    if isinstance(value, list):
        return [_cut(each, length) for each in value]
    is_long = isinstance(value, str) and len(value) > length
    return f"{value[:length]}…" if is_long else value


def _dump(value: Any) -> str:
    return json.dumps(_without_nothing(value), ensure_ascii=False, separators=(",", ":"))


def _without_nothing(value: Any) -> Any:
    """Return a value without the members that hold nothing; a list of results stays, if empty."""
    if isinstance(value, list):
        return [_without_nothing(each) for each in value]
    if not isinstance(value, dict):
        return value
    members = {name: _without_nothing(each) for name, each in value.items()}
    return {name: each for name, each in members.items() if each not in (None, "", (), {})}
