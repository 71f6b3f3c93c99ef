"""Write the output of each step of docs/walkthrough.md into it.

    python -m scripts.walkthrough

It creates the corpus "walkthrough" and removes it again.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import textsim_db as ts

PAGE = Path(__file__).parents[1] / "docs" / "walkthrough.md"
STEPS = re.compile(r"(^```python\n(.*?)^```\n\n^```text\n)(.*?)(^```$)", re.S | re.M)


def main() -> None:
    """Run the steps in order."""
    names: dict[str, Any] = {}

    def filled(step: re.Match[str]) -> str:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(step[2], PAGE.name, "exec", dont_inherit=True), names)
        return step[1] + out.getvalue() + step[4]

    try:
        PAGE.write_text(STEPS.sub(filled, PAGE.read_text("utf-8")), "utf-8")
    finally:
        with ts.connect() as db:
            if "walkthrough" in db.corpora():
                db.drop_corpus("walkthrough")


if __name__ == "__main__":
    main()
