"""A notebook in, the same with its outputs out, in a form that changes only if an output does.

The import of nbformat takes a fifth of the time of all imports, so only a test that runs pays it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tests.docs.page import ROOT
from tests.docs.session import addresses, environment

SECONDS = 180
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))
_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def executed(path: Path, folder: Path, database_url: str) -> str:
    """Execute a notebook in a folder, on a database, and return its form with the new outputs."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=SECONDS, record_timing=False, resources=resources)
    client.execute(env={**os.environ, **environment(), **addresses(database_url)})
    return as_stored(notebook)


def as_stored(notebook: Any) -> str:
    """Return a notebook without times and counts of executions.

    Its cells keep their ids, so that a new cell changes no other.
    """
    import nbformat

    notebook.metadata = nbformat.from_dict(_METADATA)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({})
        if cell.cell_type == "code":
            cell.execution_count = None
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    output.execution_count = None
    nbformat.validate(notebook)
    return f"{nbformat.writes(notebook)}\n"
