"""The generated SQL equals the output of its script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_unicode_tables_in_sql_equal_the_output_of_their_script() -> None:
    script = ROOT / "scripts" / "make_unicode_sql.py"
    output = subprocess.run(
        [sys.executable, str(script)],
        check=True,
        capture_output=True,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
    )
    assert output.stdout.decode() == (ROOT / "sql/schema/20_unicode.sql").read_text(
        encoding="utf-8"
    )
