"""Every snippet of the README and the docs runs, and prints the output that the page shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.docs.outputs import describe_difference, output_matches
from tests.docs.page import PAGES, ROOT, place, read_snippets
from tests.docs.session import SnippetFailed, environment, page_session
from tests.docs.textsim_program import textsim_program
from tests.support import spark

pytestmark = pytest.mark.more

NAMES = [
    # A page of Spark takes a minute; tests/spark tests what it shows.
    pytest.param(
        str(page.relative_to(ROOT)),
        marks=pytest.mark.long if "import SparkSession" in page.read_text("utf-8") else (),
    )
    for page in PAGES
]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the program textsim; sessions of Spark are quick meanwhile."""
    folder = tmp_path_factory.mktemp("bin")
    spark.write_defaults(folder)
    with pytest.MonkeyPatch.context() as patch, textsim_program(folder, environment()):
        patch.setenv("SPARK_CONF_DIR", str(folder))
        yield folder


@pytest.mark.parametrize("name", NAMES)
def test_page(
    name: str,
    database_url: str,
    programs: Path,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    page = ROOT / name
    if "import SparkSession" in page.read_text("utf-8") and (reason := spark.missing()):
        pytest.skip(reason)
    snippets = read_snippets(page)
    faults = []
    with page_session(page, tmp_path, database_url, programs) as session:
        for snippet in snippets:
            try:
                output = session.run(snippet)
            except SnippetFailed as error:
                faults.append(f"{place(page, snippet.line)}: failed: {snippet.code}\n{error}")
                continue
            if not output_matches(snippet, output):
                difference = describe_difference(snippet, output)
                faults.append(f"{place(page, snippet.line)}: {snippet.code}\n{difference}")
    record_property("snippets", len(snippets))
    if faults:
        command = f"python -m tests.docs.write_outputs {name}"
        pytest.fail("\n\n".join([*faults, f"to accept the outputs: {command}"]), pytrace=False)
