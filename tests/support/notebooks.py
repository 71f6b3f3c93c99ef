"""Notebooks that a kernel of their own executes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

SECONDS = 180


class _Recorder(NotebookClient):
    """Executes a notebook, and keeps what the kernel displays, updates included."""

    def __init__(self, notebook: Any, **options: Any) -> None:
        super().__init__(notebook, timeout=SECONDS, record_timing=False, **options)
        self.displayed: list[dict[str, str]] = []

    def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
        if msg["msg_type"] in ("display_data", "update_display_data", "execute_result"):
            self.displayed.append(msg["content"]["data"])
        return super().process_message(msg, cell, cell_index)


def execute(notebook: Any, folder: Path, **environment: str) -> list[dict[str, str]]:
    """Execute a notebook in a folder, and return each display of its cells, by MIME type.

    The outputs stand in the notebook afterwards. Raises CellExecutionError if a cell fails.
    """
    client = _Recorder(notebook, resources={"metadata": {"path": str(folder)}})
    client.execute(env={**os.environ, **environment})
    return client.displayed


def notebook_of(*sources: str) -> Any:
    """Return a notebook with cells of code."""
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in sources])
