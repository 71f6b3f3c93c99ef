"""A misspelt name is answered with the name that is most like it."""

from __future__ import annotations

import pydoc
import re
from collections.abc import Callable, Iterable
from typing import Any, Literal, get_args, get_origin

import pytest

import textsim_db as ts
from textsim_db.cluster.keep_rule import Preference
from textsim_db.errors import suggest_settings, suggestion
from textsim_db.files.records import expect_names
from textsim_db.measures import MEASURES
from textsim_db.measures.by_name import measure_of
from textsim_db.settings.corpus_settings import PAIR_SETTINGS, CorpusSettings
from textsim_db.settings.named_values import (
    Existing,
    ExistingName,
    Linkage,
    LinkageName,
    MeasureName,
    Mode,
    ModeName,
    Verdict,
    VerdictName,
    check_linkage,
)


@pytest.mark.parametrize(
    ("name", "others", "expected"),
    [
        ("newz", ["blog", "news"], '; did you mean "news"?'),
        ("NEWS", ["blog", "news"], '; did you mean "news"?'),
        ("title\n", ["title\t"], '; did you mean "title\\t"?'),
        ("recipes", ["blog", "news"], ""),
        ("news", [], ""),
    ],
)
def test_the_nearest_name_is_suggested(name: str, others: list[str], expected: str) -> None:
    assert suggestion(name, others) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: Preference.parse("longst"), "longest"),
        (lambda: Preference.parse("maxx:score"), "max:score"),
        (lambda: check_linkage("compleet"), "complete"),
        (lambda: measure_of("cosine_distnace"), "cosine_distance"),
        (lambda: CorpusSettings(language="atuo").complete(), "auto"),
        (lambda: expect_names(["id", "text"], [("--text", "txet")], "column"), "text"),
    ],
)
def test_a_misspelt_setting_is_suggested(call: Callable[[], object], expected: str) -> None:
    with pytest.raises(ts.TextsimError, match=f'; did you mean "{expected}"'):
        call()


def test_a_misspelt_argument_is_reported_with_the_nearest_one() -> None:
    @suggest_settings("threshold")
    def rebuild(corpus: str, **settings: float) -> float:
        return settings["threshold"]

    assert rebuild("news", threshold=0.7) == 0.7
    with pytest.raises(TypeError, match=r'rebuild\(\) has no argument "treshold"; did you mean "t'):
        rebuild("news", treshold=0.7)


@pytest.mark.parametrize(
    ("names", "values"),
    [
        (ModeName, Mode),
        (ExistingName, Existing),
        (LinkageName, Linkage),
        (VerdictName, Verdict),
        (MeasureName, MEASURES),
    ],
)
def test_type_checkers_know_the_names(names: Any, values: Iterable[str]) -> None:
    literal = names if get_origin(names) is Literal else get_args(names)[0]
    assert list(get_args(literal)) == list(values)


@pytest.mark.parametrize("function", [ts.pairs, ts.clusters, ts.dedupe_frame])
def test_help_names_the_settings(function: Callable[..., object]) -> None:
    text = pydoc.plain(pydoc.render_doc(function))
    (named,) = re.findall(r"\*\*settings:.*?They are (.*?)\.\n", text, re.S)
    assert [*map(str.strip, named.split(","))] == [*PAIR_SETTINGS]
    assert "threshold" in named
