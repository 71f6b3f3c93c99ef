"""Pages and messages advise only commands that work: no package is published yet."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FROM_AN_INDEX = re.compile(r"""pip install (--\S+ )*['"]?textsim[-_]db""")


def test_nobody_is_advised_to_install_a_package_that_is_not_published() -> None:
    files = [
        ROOT / "README.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "textsim_db").rglob("*.py"),
        *(ROOT / "examples").rglob("*.md"),
    ]
    assert len(files) > 200
    assert [str(file) for file in files if FROM_AN_INDEX.search(file.read_text("utf-8"))] == []
