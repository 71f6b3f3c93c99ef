"""Print the requirements of groups of pyproject.toml: python -m scripts.dependency_groups test."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

for group in sys.argv[1:]:
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))
    print(*project["dependency-groups"][group], sep="\n")
