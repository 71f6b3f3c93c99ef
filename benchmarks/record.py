"""Files of measured figures, which the README and the docs include (scripts/figures.py)."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "benchmarks" / "figures"

Table = Sequence[Sequence[str]]
"""The cells of a table; the first row is its header."""


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add the option --record."""
    parser.add_argument(
        "--record",
        action="store_true",
        help="write the figures to benchmarks/figures, for the docs",
    )


def record(name: str, figures: Mapping[str, Any], tables: Mapping[str, Table]) -> None:
    """Write figures and tables to benchmarks/figures/NAME.json.

    Pages name a figure by its path (`{scale.d1000000.load_s:.0f}`) and a table by its name, which no
    other file has.
    """
    FOLDER.mkdir(exist_ok=True)
    contents = {"measured": conditions(), "figures": figures, "tables": tables}
    text = json.dumps(contents, indent=1, ensure_ascii=False)
    text = re.sub(r"\[\n[^\[\]{}]*\]", lambda row: " ".join(row[0].split()), text)  # a row, a line
    (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    print(f"recorded in benchmarks/figures/{name}.json; now: make figures", file=sys.stderr)


def conditions() -> dict[str, str]:
    """Return what was run, on which commit, when, and on which machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    module = Path(sys.argv[0]).stem
    arguments = [argument for argument in sys.argv[1:] if argument != "--record"]
    return {
        "command": " ".join(["python -m", f"benchmarks.{module}", *arguments]),
        "commit": commit(ROOT),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": f"{os.cpu_count()} cores, {memory:.0f} GB of memory, "
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }


def commit(checkout: Path) -> str:
    """Return the commit of a checkout, and whether files of it differ."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def identifier(label: str) -> str:
    """Return the name of a figure: "one query, cold, median ms" is one_query_cold_median_ms."""
    return re.sub(r"\W+", "_", label).strip("_")


def shown(value: float) -> str:
    """Return a figure with three digits or more."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def markdown(table: Table) -> str:
    """Return a table as Markdown."""
    header, *rows = table
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
