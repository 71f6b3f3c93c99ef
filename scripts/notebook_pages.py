"""A hook of MkDocs: each notebook of the docs becomes a page, with the outputs that it stores.

A plugin would bring the style and the scripts of Jupyter, and parts of them load from a network. The
notebook itself stays beside its page, so that a reader can download it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

_BACKTICKS = re.compile("`{3,}")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page of Markdown for each notebook; MkDocs calls this."""
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            page = str(PurePosixPath(file.src_uri).with_suffix(".md"))
            content = page_of(json.loads(file.content_string), PurePosixPath(file.src_uri).name)
            files.append(File.generated(config, page, content=content))
    return files


def page_of(notebook: dict[str, Any], name: str) -> str:
    """Return a notebook as Markdown; name: the file to download."""
    pieces = [piece for cell in notebook["cells"] for piece in _cell(cell)]
    link = f"[Download this page as a notebook]({name}).\n"
    title, *rest = pieces
    return "\n".join([title, link, *rest])


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield f"{source}\n"
        return
    yield _fenced(source, "python")
    for output in cell["outputs"]:
        yield _output(output)


def _output(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _fenced("".join(output["text"]), "text")
    data = output["data"]
    if "text/html" in data:
        # An empty line would end the block of HTML.
        lines = "".join(data["text/html"]).splitlines()
        return "\n".join(line for line in lines if line.strip()) + "\n"
    return _fenced("".join(data["text/plain"]), "text")


def _fenced(text: str, language: str) -> str:
    longest = max(map(len, _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"
