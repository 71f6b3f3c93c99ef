"""The examples in docstrings, which the Python reference shows, give the results that they show."""

import doctest
import pkgutil
from importlib import import_module

import pytest

import textsim_db.measures

MODULES = [
    "textsim_db.diff.explanation",
    "textsim_db.settings",
    "textsim_db.choose_bands",
    "textsim_db.keys",
    "textsim_db.sketch.cost_of_bands",
    "textsim_db.text.shingles",
    "textsim_db.text.tokens",
    *(
        f"textsim_db.measures.{module.name}"
        for module in pkgutil.iter_modules(textsim_db.measures.__path__)
    ),
]


@pytest.mark.parametrize("name", MODULES)
def test_an_example_gives_the_result_that_it_shows(name: str) -> None:
    assert doctest.testmod(import_module(name)).failed == 0
