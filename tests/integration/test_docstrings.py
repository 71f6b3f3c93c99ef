"""The examples in the docstrings of public objects print the output that they show."""

import doctest
import pkgutil
from importlib import import_module
from typing import Any

import pytest

from textsim_db import corpus, database
from textsim_db.aio import corpus as aio_corpus
from textsim_db.aio import database as aio_database
from textsim_db.aio import streams
from textsim_db.dedupe import dedupe_frame

MODULES = [
    *(
        import_module(found.name)
        for found in pkgutil.iter_modules(corpus.__path__, "textsim_db.corpus.")
    ),
    *(database, dedupe_frame, aio_corpus, aio_database, streams),
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
