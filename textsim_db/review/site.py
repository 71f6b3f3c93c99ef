"""Site: what all pages share: the documents, their clusters, and what is judged on the pages."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from textsim_db.corpus import Corpus
from textsim_db.errors import DocumentNotFound, JudgementExists
from textsim_db.measures.word_diff import ShownText
from textsim_db.results import Judgement, Pair
from textsim_db.results.shown_values import shown
from textsim_db.review.pair_arrays import HUNDREDTHS, Pairs
from textsim_db.review.rendering import Summary, begin_of, mark, render, summary
from textsim_db.review.report_documents import JudgementFile
from textsim_db.review.reviewed_clusters import ChainClusters, Judged, StoredClusters
from textsim_db.review.survey import Reviewed, Survey
from textsim_db.settings.named_values import VerdictName

ON_A_PAGE = 25
_MOST_UNDONE = 1000
"""The judgements that can be taken back."""
_MOST_CLUSTERINGS = 4
"""The thresholds whose clusters are kept in memory."""


Clusters = ChainClusters | StoredClusters
"""The clusters of the pages, the largest first."""


Judgements = dict[tuple[str, str], Judgement]
"""Judgements by their two keys."""

JudgementStore = Corpus | JudgementFile
"""Stores judgements of pairs."""


class Done(NamedTuple):
    """A judgement that was recorded here."""

    before: Judgement | None
    """The judgement that it replaced."""
    now: Judgement


class Judging:
    """Records the judgements of the pages of one server, and takes them back, the last one first."""

    def __init__(self, store: JudgementStore) -> None:
        self._store = store
        self._done: list[Done] = []
        self._lock = threading.Lock()

    @property
    def last(self) -> Judgement | None:
        """The last judgement that was recorded here and was not undone."""
        return self._done[-1].now if self._done else None

    def all(self) -> Judgements:
        return {(judgement.a, judgement.b): judgement for judgement in self._store.judgements()}

    def judge(self, a: str, b: str, verdict: VerdictName, note: str | None, seen: str) -> None:
        """Record a verdict; seen: the mark of the judgement that the user saw.

        Raises JudgementExists if the pair has another judgement by now.
        """
        a, b = min(a, b), max(a, b)
        with self._lock:
            before = self._checked(a, b, seen)
            self._store.judge(a, b, verdict, note, replaces=before.verdict if before else None)
            self._done = [*self._done, Done(before, self.all()[a, b])][-_MOST_UNDONE:]

    def undo(self) -> Judgement | None:
        """Restore what the last judgement replaced, and return that judgement; None without any.

        Raises JudgementExists if somebody has replaced it since; then it counts as undone.
        """
        with self._lock:
            if not self._done:
                return None
            before, now = self._done.pop()
            self._checked(now.a, now.b, mark(now))
            if before is None:
                self._store.unjudge(now.a, now.b)
            else:
                restored = (*before[:3], before.note, before.source, before.confidence)
                self._store._judge_many([(*restored, (before.hash_a, before.hash_b))], replace=True)
                self._restored(before)
            return now

    def _restored(self, before: Judgement) -> None:
        """Let the step that recorded a judgement be undone although the judgement has a new time."""
        steps = range(len(self._done) - 1, -1, -1)
        for i in steps:
            if self._done[i].now == before:
                stored = self.all()[before.a, before.b]
                self._done[i] = self._done[i]._replace(now=stored)

    def _checked(self, a: str, b: str, seen: str) -> Judgement | None:
        """Return the judgement of a pair, if it is the one that the user saw."""
        stored = self.all().get((a, b))
        if mark(stored) != seen:
            state = "removed the judgement" if stored is None else f"judged it {stored.verdict}"
            by = "somebody" if stored is None else stored.judged_by
            raise JudgementExists(f"{by} {state} meanwhile; your action was not recorded")
        return stored


class Site:
    def __init__(self, reviewed: Reviewed, read_only: bool) -> None:
        self.reviewed = reviewed
        self.read_only = read_only
        self.judging = Judging(reviewed.judgement_store)
        self.survey = Survey(reviewed)
        self.has_doubtful = reviewed.unique_from is not None
        self.has_siblings = bool(reviewed.guards)
        self._clusterings: dict[tuple[object, ...], ChainClusters] = {}

    def render(self, template: str, status: int = 200, /, **values: Any) -> Response:
        page = render(
            template,
            name=self.reviewed.name,
            documents=self.survey.documents,
            read_only=self.read_only,
            has_doubtful=self.has_doubtful,
            has_siblings=self.has_siblings,
            is_rebuilt=self.reviewed.is_rebuilt,
            incomplete_below=self.reviewed.incomplete_below,
            is_complete=self.survey.is_complete,
            read_so_far=self.survey.count,
            last=self.judging.last,
            **values,
        )
        return HTMLResponse(page, status)

    def threshold(self, request: Request) -> float:
        given = fraction(request.query_params.get("threshold"), self.reviewed.threshold)
        return round(given * HUNDREDTHS) / HUNDREDTHS

    def clusters(self, pairs: Pairs, threshold: float, judgements: Judgements) -> Clusters:
        """Return the stored clusters if there are any, or else those of chains at a threshold."""
        if self.survey.clusters is not None:
            self.survey.clusters.refresh()
            return self.survey.clusters
        verdicts = frozenset(
            (*pair, each.verdict) for pair, each in judgements.items() if not each.is_stale
        )
        name = (id(pairs), threshold, verdicts)
        if name not in self._clusterings:
            judged = Judged.of(judgements.values())
            strangers = [k for g in judged.groups for k in g if pairs.document(k) is None]
            existing = {k for g in judged.groups for k in g} - set(strangers)
            existing |= self.reviewed.traits(strangers).keys() if strangers else set()
            while len(self._clusterings) >= _MOST_CLUSTERINGS:
                self._clusterings.pop(next(iter(self._clusterings)))
            self._clusterings[name] = ChainClusters(
                pairs, threshold, judged, existing, self.reviewed.kept
            )
        return self._clusterings[name]

    def texts(self, *keys: str) -> list[ShownText]:
        """Return the texts of documents; raises DocumentNotFound."""
        texts = self.reviewed.texts(list(keys))
        for key in keys:
            if key not in texts:
                raise DocumentNotFound(f'there is no document "{shown(key)}"')
        return [texts[key] for key in keys]

    def rows(self, pairs: list[Pair[str]], judgements: Judgements) -> list[Mapping[str, object]]:
        """Return pairs as a table shows them, with the first difference of their texts."""
        keys = sorted({key for pair in pairs for key in pair[:2]})
        texts = self.reviewed.texts(keys) if keys else {}
        rows: list[Mapping[str, object]] = []
        for pair, guards in zip(pairs, self.reviewed.guards_apart(pairs), strict=True):
            one, other = texts.get(pair.a), texts.get(pair.b)
            both = Summary([], []) if one is None or other is None else summary(one, other)
            judgement = judgements.get((min(pair[:2]), max(pair[:2])))
            own = {"pair": pair, "judgement": judgement, "guards": guards}
            rows.append({**own, **both._asdict()})
        return rows

    def begins(self, keys: list[str]) -> list[str]:
        texts = self.reviewed.texts(keys) if keys else {}
        return [begin_of(texts[key]) if key in texts else "" for key in keys]

    def check_writable(self) -> None:
        if self.read_only:
            raise HTTPException(403, "this review was started with --read-only")


def two_keys(request: Request) -> tuple[str, str]:
    """Return the keys of an address in order; they are no fields, because forms change line breaks."""
    a, b = (request.query_params.get(name) for name in ("a", "b"))
    if a is None or b is None or a == b:
        raise HTTPException(400, "the address names no pair")
    return min(a, b), max(a, b)


def whole_number(text: str | None) -> int:
    """Read a number of an address; 0 if it is none."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else 0


def finite(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def fraction(text: str | None, default: float) -> float:
    value = finite(text)
    return default if value is None else min(max(value, 0.0), 1.0)


def see(path: str, **query: object) -> Response:
    return RedirectResponse(f"{path}?{urlencode(query)}" if query else path, 303)
