"""Every notebook of the docs runs, and its stored outputs are those of the run."""

from __future__ import annotations

import difflib
from pathlib import Path

import nbformat
import pytest

from scripts.notebook_pages import page_of
from tests.docs.notebook import NOTEBOOKS, as_stored, executed
from tests.docs.page import ROOT
from tests.support.notebooks import execute, notebook_of


@pytest.mark.more
@pytest.mark.parametrize("name", [str(path.relative_to(ROOT)) for path in NOTEBOOKS])
def test_the_stored_outputs_are_current(name: str, database_url: str, tmp_path: Path) -> None:
    stored = (ROOT / name).read_text("utf-8")
    now = executed(ROOT / name, tmp_path, database_url)
    if now != stored:
        lines = difflib.unified_diff(
            stored.splitlines(), now.splitlines(), "stored", "now", "", "", 1
        )
        command = f"python -m tests.docs.write_outputs {name}"
        pytest.fail("\n".join([*lines, f"to accept the outputs: {command}"]), pytrace=False)


@pytest.mark.more
def test_nothing_that_changes_by_itself_is_stored(tmp_path: Path) -> None:
    stored = []
    for _ in range(2):
        notebook = notebook_of("print(1)", "from IPython.display import HTML\nHTML('')", "2")
        for place, cell in enumerate(notebook.cells):
            cell.id = f"cell-{place}"
        execute(notebook, tmp_path)
        stored.append(as_stored(notebook))
    assert stored[0] == stored[1]
    again = nbformat.reads(stored[0], as_version=4)
    assert as_stored(again) == stored[0]
    assert [cell.execution_count for cell in again.cells] == [None] * 3
    assert "timestamp" not in stored[0]


def test_a_page_of_a_notebook_has_its_cells_and_outputs() -> None:
    def code(source: str, *outputs: dict[str, object]) -> dict[str, object]:
        return {"cell_type": "code", "source": [source], "outputs": list(outputs)}

    table = {"text/plain": ["..."], "text/html": ["<div>\n", "\n", "  \n", "<b>x</b></div>"]}
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "\n", "Text."]},
        code("x = '```'", {"output_type": "stream", "text": ["one\n", "two\n"]}),
        code("x", {"output_type": "execute_result", "data": table}),
        code("y", {"output_type": "execute_result", "data": {"text/plain": ["'y'"]}}),
    ]
    expected = """\
# Title

Text.

[Download this page as a notebook](x.ipynb).

````python
x = '```'
````

```text
one
two
```

```python
x
```

<div>
<b>x</b></div>

```python
y
```

```text
'y'
```
"""
    assert page_of({"cells": cells}, "x.ipynb") == expected
