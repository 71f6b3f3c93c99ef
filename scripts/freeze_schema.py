"""Freeze the schema for the first release; from then on it changes only by steps.

    python -m scripts.freeze_schema

Run it once, before the first release. It copies sql/schema/ to sql/upgrade/0001_schema/, lets revision
0001 run the copy, and writes checksums, which a test compares.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

STEP = "0001_schema"
CHECKSUMS = "checksums.txt"


def freeze(root: Path) -> None:
    """Freeze the schema of a checkout; raises FileExistsError if it is frozen already."""
    upgrade = root / "sql" / "upgrade"
    upgrade.mkdir()
    shutil.copytree(root / "sql" / "schema", upgrade / STEP)
    revision = root / "migrations" / "versions" / f"{STEP}.py"
    text = revision.read_text(encoding="utf-8")
    text = text.replace("schema.first_revision()", f'"{STEP}"')
    text = text.replace('"schema/*.sql"', f'"upgrade/{STEP}/*.sql"')
    revision.write_text(text, encoding="utf-8")
    lines = [f"{name}  {digest}\n" for name, digest in checksums(upgrade).items()]
    (upgrade / CHECKSUMS).write_text("".join(lines), encoding="utf-8")


def checksums(upgrade: Path) -> dict[str, str]:
    """Return the SHA-256 of each SQL file in a folder and its subfolders, by path."""
    files = sorted(upgrade.rglob("*.sql"))
    return {
        file.relative_to(upgrade).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
    }


if __name__ == "__main__":
    freeze(Path(__file__).parents[1])
