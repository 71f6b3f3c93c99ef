"""Write the files that registries need: an SBOM, server.json, META.json, and a recipe for conda.

All facts come from pyproject.toml. The project has no public address yet, so OWNER stands in its place,
and missing() says what to add.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

from textsim_db import __version__

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NAME = PROJECT["name"]
_NEEDED = {
    "urls": "[project.urls] Repository, such as https://github.com/OWNER/textsim-db",
    "authors": "[project] authors, with a name and an address",
}
_EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The time of each file in a zip archive, so that the same files give the same archive."""


def missing() -> list[str]:
    """Return what pyproject.toml lacks before a publication."""
    return [text for name, text in _NEEDED.items() if name not in PROJECT]


def repository() -> str:
    """Return the public address, or one that leads nowhere."""
    return str(
        PROJECT.get("urls", {}).get("Repository", "https://example.invalid/OWNER/textsim-db")
    )


def owner() -> str:
    """Return the account that the repository belongs to."""
    return repository().split("/")[-2]


def write_sbom(python: Path, file: Path) -> Path:
    """List the packages of an environment with their licences, in CycloneDX; the tool validates it."""
    command = ["-m", "cyclonedx_py", "environment", "--output-reproducible", "--output-file"]
    options = ["--pyproject", str(ROOT / "pyproject.toml"), str(python)]
    subprocess.run([sys.executable, *command, str(file), *options], check=True, capture_output=True)
    return file


def mcp_server() -> dict[str, Any]:
    """Return server.json for the registry of MCP servers: a client starts `textsim mcp CORPUS`."""
    description = "Find, compare and remember texts without near-duplicates, in PostgreSQL"
    package = {
        "registryType": "pypi",
        "identifier": NAME,
        "version": __version__,
        "runtimeHint": "uvx",
        "runtimeArguments": [
            {"type": "named", "name": "--with", "value": f"{NAME}[embedded,mcp]=={__version__}"}
        ],
        "transport": {"type": "stdio"},
        "packageArguments": [
            {"type": "positional", "value": "mcp"},
            {
                "type": "positional",
                "valueHint": "corpus",
                "description": "The name of a corpus",
                "isRequired": True,
            },
        ],
        "environmentVariables": [
            {
                "name": "TEXTSIM_DATABASE_URL",
                "description": "The address of a PostgreSQL; without it an embedded one is started",
                "isSecret": True,
            }
        ],
    }
    return {
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": f"io.github.{owner()}/{NAME}",
        "title": NAME,
        "description": description,
        "repository": {"url": repository(), "source": "github"},
        "version": __version__,
        "packages": [package],
    }


def pgxn_metadata() -> dict[str, Any]:
    """Return META.json, by version 1.0.0 of PGXN's specification."""
    authors = PROJECT.get("authors", [{"name": "OWNER"}])
    abstract = "Find duplicate and near-duplicate texts by plain SQL"
    extension = {
        "file": "sql/extension/textsim.control",
        "version": __version__,
        "abstract": abstract,
    }
    return {
        "name": "textsim",
        "abstract": abstract,
        "version": __version__,
        "maintainer": [
            " ".join(filter(None, map(each.get, ("name", "email")))) for each in authors
        ],
        "license": "apache_2_0",
        "provides": {"textsim": extension},
        "prereqs": {"runtime": {"requires": {"PostgreSQL": "14.0.0"}}},
        "resources": {"repository": {"web": repository(), "type": "git"}},
        "tags": [word for word in PROJECT["keywords"] if word not in ("pgvector", "postgresql")],
        "meta-spec": {"version": "1.0.0"},
    }


def write_pgxn(source: Path, names: list[str], file: Path) -> Path:
    """Pack the sources of the extension with META.json; `make install` at the top installs it."""
    contents = {name: (source / name).read_bytes() for name in names}
    contents["META.json"] = as_json(pgxn_metadata())
    contents["Makefile"] = b"all:\n%:\n\t$(MAKE) -C sql/extension $@\n"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(contents.items()):
            archive.writestr(zipfile.ZipInfo(f"textsim-{__version__}/{name}", _EARLIEST), data)
    return file


def conda_recipe(sdist: Path) -> dict[str, Any]:
    """Return recipe.yaml, in version 1 of the format of recipes."""
    needed = [re.sub(r"\[.*?\]", "", each).replace(">=", " >=") for each in PROJECT["dependencies"]]
    python = f"python {PROJECT['requires-python']}"
    digest = hashlib.sha256(sdist.read_bytes()).hexdigest()
    address = f"{repository()}/releases/download/v{__version__}/{sdist.name}"
    scripts = [f"{name} = {function}" for name, function in PROJECT["scripts"].items()]
    return {
        "schema_version": 1,
        "package": {"name": NAME, "version": __version__},
        "source": {"url": address, "sha256": digest},
        "build": {
            "noarch": "python",
            "script": "${{ PYTHON }} -m pip install . --no-deps --no-build-isolation -vv",
            "python": {"entry_points": scripts},
        },
        "requirements": {"host": [python, "pip", "hatchling"], "run": [python, *needed]},
        "tests": [{"python": {"imports": ["textsim_db"]}}, {"script": ["textsim --version"]}],
        "about": {
            "summary": PROJECT["description"],
            "license": PROJECT["license"],
            "license_file": "LICENSE",
            "homepage": repository(),
        },
    }


def as_json(value: object) -> bytes:
    """Return JSON, which is YAML as well."""
    return (json.dumps(value, indent=2) + "\n").encode()
