"""The members of a cluster beside one of them, word by word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from textsim_db.measures.explanation import Side, side_of_form, warning_note
from textsim_db.measures.sets import jaccard
from textsim_db.measures.word_diff import (
    LONGEST_EXCERPT,
    Part,
    differences,
    excerpt_of_both,
    written,
)
from textsim_db.results.html import count, escaped, note, output, shortened, similarity
from textsim_db.settings.corpus_settings import CorpusConfig

_SHOWN_MEMBERS = 20
"""The members that a notebook shows."""


class ExplainedMember(NamedTuple):
    """A member of a cluster, compared with the kept document or with the first member."""

    key: str
    """The key of the member."""
    similarity: float
    """The exact Jaccard similarity of the two."""
    parts: list[Part]
    """Both texts from start to end, as runs of equal and of different words; this member is `b`."""
    distinctions: list[str]
    """The kinds of the different words, if all are "dates", "negations" or "numbers"."""


class ExplainedCluster(NamedTuple):
    """The result of `Corpus.explain_cluster()`: where the members of a cluster differ."""

    key: str
    """The document that all others are compared with."""
    text: str
    """Its words, with one space between them."""
    members: list[ExplainedMember]
    """The other documents, the least similar first."""
    left_out: int
    """The number of members that were not compared."""

    def __repr__(self) -> str:
        members = f"<{count(len(self.members), 'member')}>"
        return f"ExplainedCluster(key={self.key!r}, members={members}, left_out={self.left_out})"

    def _repr_html_(self) -> str:
        shown = self.members[:_SHOWN_MEMBERS]
        left_out = len(self.members) - len(shown) + self.left_out
        return output(
            f"<p><b><bdi>{escaped(self.key)}</bdi></b></p>\n",
            f'<div class="text" dir="auto">{shortened(written(self.text), LONGEST_EXCERPT)}</div>\n',
            *map(_member_as_html, shown),
            note(f"{count(left_out, 'more document')} left out") if left_out else "",
        )


def explain_cluster(
    forms: Mapping[str, str], key: str, left_out: int, config: CorpusConfig
) -> ExplainedCluster:
    """Compare documents with one of them; forms: the words of each document, by key."""
    first = side_of_form(forms[key], config)
    members = [
        _member(other, first, side_of_form(form, config))
        for other, form in forms.items()
        if other != key
    ]
    members.sort(key=lambda member: (member.similarity, member.key))
    return ExplainedCluster(key, forms[key], members, left_out)


def _member(key: str, first: Side, other: Side) -> ExplainedMember:
    changes = differences(first.tokens, other.tokens)
    return ExplainedMember(key, jaccard(first.shingles, other.shingles), *changes)


def _member_as_html(member: ExplainedMember) -> str:
    return (
        f"<p><b><bdi>{escaped(member.key)}</bdi></b>, similarity {similarity(member.similarity)}</p>\n"
        f"{excerpt_of_both(member.parts)}\n{warning_note(member.distinctions)}"
    )
