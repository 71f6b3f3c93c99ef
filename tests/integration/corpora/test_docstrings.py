"""The examples in docstrings of public objects print the output that they show."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module
from typing import Any

import pytest

import textsim_db.measures
from textsim_db import corpus
from textsim_db.aio import async_database, threads
from textsim_db.dedupe import compare_texts, dedupe_frame

MODULES = [
    corpus,
    *(
        import_module(found.name)
        for found in pkgutil.iter_modules(corpus.__path__, "textsim_db.corpus.")
    ),
    *(compare_texts, dedupe_frame, async_database, threads),
]
EXAMPLES = [
    example
    for module in MODULES
    for example in doctest.DocTestFinder().find(module)
    if example.examples
]
CORPUS = next(example for example in EXAMPLES if example.name.endswith(".Corpus"))
"""The example of the class, which creates the corpus of the other examples."""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_example_of_a_docstring(
    example: doctest.DocTest, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEXTSIM_DATABASE_URL", database_url)
    names: dict[str, Any] = {}
    if example is not CORPUS and not example.name.endswith((".Database", ".connect")):
        for line in CORPUS.examples:
            exec(line.source, names)
    example.globs = names
    output: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    result = runner.run(example, out=output.append, clear_globs=False)
    if "db" in names:
        names["db"].close()
    assert result.failed == 0, "".join(output)


PURE_MODULES = [
    "textsim_db.sql",
    "textsim_db.text.languages",
    "textsim_db.measures.explanation",
    "textsim_db.settings.named_values",
    "textsim_db.settings.choose_bands",
    "textsim_db.text.storable",
    "textsim_db.sketch.plan_options",
    "textsim_db.text.shingles",
    "textsim_db.text.tokens",
    *(
        f"textsim_db.measures.{module.name}"
        for module in pkgutil.iter_modules(textsim_db.measures.__path__)
    ),
]


@pytest.mark.parametrize("name", PURE_MODULES)
def test_an_example_gives_the_result_that_it_shows(name: str) -> None:
    assert doctest.testmod(import_module(name)).failed == 0
