"""An installation of the package without its extras: a folder of links to installed packages."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import textsim_db

_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[([\w,.-]+)\])?")
_EXTRA = re.compile(r"""extra\s*==\s*["']([\w.-]+)["']""")


def link_base_packages(folder: Path) -> None:
    """Link the packages that the package needs, and those that they need, in an empty folder."""
    project = Path(textsim_db.__file__).parents[1] / "pyproject.toml"
    waiting = [*tomllib.loads(project.read_text())["project"]["dependencies"]]
    linked: set[tuple[str, str]] = set()
    while waiting:
        name, extras = _REQUIREMENT.match(waiting.pop()).groups("")  # type: ignore[union-attr]
        if (name, extras) in linked:
            continue
        linked.add((name, extras))
        try:
            installed = distribution(name)
        except PackageNotFoundError:  # for another system
            continue
        for requirement in installed.requires or ():
            extra = _EXTRA.search(requirement)
            if extra is None or extra[1] in extras.split(","):
                waiting.append(requirement)
        for top in {file.parts[0] for file in installed.files or ()} - {"..", "__pycache__"}:
            if not (folder / top).exists():
                (folder / top).symlink_to(Path(str(installed.locate_file(top))))
