"""Run pages and notebooks, and write the outputs of their snippets and cells into them.

    python -m tests.docs.write_outputs README.md docs/index.md

Without arguments it runs all pages and notebooks. An output that still matches stays as it is, with its
`...`. To show the output of a block of Python or SQL, write an empty ```text block below it first.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from nbclient.exceptions import CellExecutionError

from tests.docs.notebook import NOTEBOOKS, executed
from tests.docs.outputs import merge_outputs, output_matches, tidy
from tests.docs.page import PAGES, Snippet, place, read_snippets
from tests.docs.session import SnippetFailed, page_session
from tests.support.servers import Server, start_embedded
from textsim_db.db import embedded_server


def main() -> int:
    """Rewrite the named pages and notebooks, by default all; return 1 if a snippet failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("page", nargs="*", type=Path, default=[*PAGES, *NOTEBOOKS])
    pages = parser.parse_args().page
    with tempfile.TemporaryDirectory(prefix="ts-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # the embedded server of root runs as another user
        server = Server(start_embedded(Path(folder), embedded_server.SERVER_VERSION), "page_")
        server.make_template()
        try:
            return max(_write(page.resolve(), server, Path(folder)) for page in pages)
        finally:
            embedded_server.stop(Path(folder))


def _write(page: Path, server: Server, parent: Path) -> int:
    write = write_notebook if page.suffix == ".ipynb" else write_page
    return write(page, server, parent)


def write_notebook(path: Path, server: Server, parent: Path) -> int:
    """Execute a notebook and store its outputs; return 1 if a cell failed."""
    folder = Path(tempfile.mkdtemp(dir=parent))
    try:
        with server.clone() as url:
            path.write_text(executed(path, folder, url), "utf-8")
    except CellExecutionError as error:
        print(f"{place(path, 1)}: failed: {error}", file=sys.stderr)
        return 1
    print(f"{place(path, 1)}: outputs written", file=sys.stderr)
    return 0


def write_page(page: Path, server: Server, parent: Path) -> int:
    """Run a page and rewrite the outputs that differ; return 1 if a snippet failed.

    The page's folder in the parent stays: Spark's processes work in the folder of the first page.
    """
    failed = 0
    outputs: list[tuple[Snippet, str]] = []
    folder = Path(tempfile.mkdtemp(dir=parent))
    with server.clone() as url, page_session(page, folder, url) as session:
        for snippet in read_snippets(page):
            try:
                output = session.run(snippet)
            except SnippetFailed as error:
                print(f"{place(page, snippet.line)}: failed: {error}", file=sys.stderr)
                failed = 1
                continue
            if not output_matches(snippet, output):
                outputs.append((snippet, output))
    lines = page.read_text("utf-8").splitlines()
    for snippet, output in reversed(outputs):
        write_output(lines, snippet, output)
    if outputs:
        page.write_text("\n".join(lines) + "\n", "utf-8")
    print(f"{place(page, 1)}: {len(outputs)} outputs written", file=sys.stderr)
    return failed


def write_output(lines: list[str], snippet: Snippet, output: str) -> None:
    """Put an output into the lines of a page."""
    if snippet.expected is None:
        print(f"line {snippet.line}: no ```text block for: {tidy(output)}", file=sys.stderr)
        return
    new = merge_outputs(snippet.expected, output).splitlines()
    lines[snippet.first : snippet.last] = [f"{snippet.indent}{line}".rstrip() for line in new]


if __name__ == "__main__":
    raise SystemExit(main())
