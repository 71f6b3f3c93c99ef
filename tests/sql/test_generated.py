"""The generated SQL is what its script writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_tables_in_sql_are_those_of_python() -> None:
    script = ROOT / "scripts" / "make_unicode_sql.py"
    made = subprocess.run(
        [sys.executable, str(script)],
        check=True,
        capture_output=True,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
    )
    assert made.stdout.decode() == (ROOT / "sql/schema/20_unicode.sql").read_text(encoding="utf-8")
