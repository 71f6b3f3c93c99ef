"""Judgements of documents that are not stored, as textsim._judged_groups reads those of a corpus."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

from textsim_db.cluster.pair_groups import JudgedPairs, groups_judged_same
from textsim_db.errors import ConfigurationError
from textsim_db.settings.named_values import Verdict
from textsim_db.sketch.ragged import Parts


class JudgedDocuments(NamedTuple):
    """A judgement of two documents."""

    a: int
    """The place of one document among all, from 0 on; a higher number if it is none of them."""
    b: int
    """The same of the other document."""
    verdict: str
    place: str
    """The file and the line of the judgement, for messages."""


def judged_pairs(
    judgements: list[JudgedDocuments], ids: dict[int, int], parts: Parts
) -> JudgedPairs:
    """Return the judged pairs among documents; ids: by the places that the judgements name."""
    for a, b, _, place in judgements:
        if a == b:
            raise ConfigurationError(f"{place}: the pair has the same record twice")
        if a in ids and b in ids and parts is not None and parts[ids[a]] != parts[ids[b]]:
            raise ConfigurationError(f"{place}: the records of the pair have different scopes")
    same, different = (
        [(a, b) for a, b, verdict, _ in judgements if verdict == wanted]
        for wanted in (Verdict.SAME, Verdict.DIFFERENT)
    )
    joined: list[tuple[int, int]] = []
    for group in groups_judged_same(same, different):
        members = [ids[place] for place in group if place in ids]
        joined += [
            pair
            for pair in combinations(members, 2)
            if parts is None or parts[pair[0]] == parts[pair[1]]
        ]
    apart = [(ids[a], ids[b]) for a, b in different if a in ids and b in ids]
    return JudgedPairs.of(joined, apart)
