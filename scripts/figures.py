"""Write the figures that benchmarks recorded into the README and the docs.

    python -m scripts.figures [--check]

A page says between two comments, for cog, what stands there:

    <!-- [[[cog import scripts.figures as f; f.sentence("{scale.d1000000.load_s:.0f} s") ]]] -->
    <!-- [[[end]]] -->

A figure is named by its file in benchmarks/figures and its path in the file. f.table("scale") writes a
table, whose name no two of these files have. The pictures of figures are drawn anew, too.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from cogapp import Cog

from benchmarks.harness import FOLDER, Table, markdown
from scripts.pictures import pictures

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


class Figures:
    """Figures by name, so that a format string can follow a path."""

    def __init__(self, path: str, values: dict[str, Any]) -> None:
        self._path = path
        self._values = values

    def __getattr__(self, name: str) -> Any:
        if name not in self._values:
            raise LookupError(
                f"no figure {self._path}.{name}; there are: {', '.join(self._values)}"
            )
        value = self._values[name]
        return Figures(f"{self._path}.{name}", value) if isinstance(value, dict) else value


def sentence(text: str) -> None:
    """Write a text, of one line or several, with figures in the place of their names in braces."""
    files = _files()
    figures = {
        name: Figures(name, contents["figures"] | {"measured": contents["measured"]})
        for name, contents in files.items()
    }
    _write(text.strip("\n").format(**figures))


def table(name: str, **cells: str) -> None:
    """Write a recorded table, or its rows that have these cells, such as threshold="0.8"."""
    tables: dict[str, Table] = {}
    for contents in _files().values():
        tables |= contents["tables"]
    if name not in tables:
        raise LookupError(f"no table {name}; there are: {', '.join(tables)}")
    header, *rows = tables[name]
    chosen = [
        row for row in rows if all(row[header.index(name)] == cell for name, cell in cells.items())
    ]
    _write(markdown([header, *chosen]).rstrip("\n"))


def _write(text: str) -> None:
    import cog  # the module that cog makes for the code of a page

    cog.outl(text)


def _files() -> dict[str, dict[str, Any]]:
    return {
        path.stem: json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))
    }


def outdated_pictures() -> dict[Path, str]:
    """Return the pictures that do not show the recorded figures, as they should be."""
    files = _files()
    drawn = {IMAGES / f"{name}.svg": svg for name, svg in pictures(files).items()}
    return {
        path: svg
        for path, svg in drawn.items()
        if not path.exists() or path.read_text("utf-8") != svg
    }


def main() -> int:
    """Rewrite pages and pictures; with --check, return a status other than 0 if one would change."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="change nothing; show what would change"
    )
    is_check = parser.parse_args().check
    outdated = outdated_pictures()
    for path, svg in outdated.items():
        if is_check:
            print(f"{path.relative_to(ROOT)} does not show the recorded figures")
        else:
            path.write_text(svg, encoding="utf-8")
    options = ["--check", "--diff"] if is_check else ["-r"]
    status = int(Cog().main(["cog", "--verbosity=1", *options, *map(str, PAGES)]))
    return status or int(is_check and bool(outdated))


if __name__ == "__main__":
    raise SystemExit(main())
