"""Released versions of textsim-db, which tests run as older clients beside the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from platformdirs import user_cache_path

ROOT = Path(__file__).parents[2]


def share_kernels(folder: Path) -> None:
    """Copy the compiled kernels of the checkout, which take a minute, if their files are all equal.

    A compiled kernel has in it what it calls, so those of different versions must not be mixed.
    """
    kernels = {
        kernel: kernel.parents[1] / f"{kernel.name.split('.')[0]}.py"
        for kernel in (ROOT / "textsim_db").rglob("*.nb?")
    }
    for file in {file for file in kernels.values() if file.exists()}:
        copy = folder / file.relative_to(ROOT)
        if not copy.exists() or file.read_bytes() != copy.read_bytes():
            return
    for kernel in kernels:
        copy = folder / kernel.relative_to(ROOT)
        copy.parent.mkdir(exist_ok=True)
        shutil.copy2(kernel, copy)


@dataclass(frozen=True)
class Release:
    """A wheel in tests/released, which is unpacked once, so that its kernels are compiled once."""

    wheel: Path

    @property
    def version(self) -> str:
        return self.wheel.name.split("-")[1]

    @cached_property
    def folder(self) -> Path:
        """The unpacked wheel."""
        digest = sha256(self.wheel.read_bytes()).hexdigest()[:12]
        folder = user_cache_path("textsim-db") / "released" / digest
        if not folder.is_dir():
            unpacked = folder.with_name(f"{digest}-{os.getpid()}")
            with zipfile.ZipFile(self.wheel) as files:
                files.extractall(unpacked)
            share_kernels(unpacked)
            try:
                unpacked.rename(folder)
            except OSError:  # another process was faster
                shutil.rmtree(unpacked)
        return folder

    @property
    def sql(self) -> Path:
        return self.folder / "textsim_db" / "_sql"

    @property
    def revision(self) -> str:
        """The newest revision of the schema that it knows."""
        versions = self.folder / "textsim_db" / "_migrations" / "versions"
        return max(file.stem for file in versions.glob("[0-9]*.py"))

    def call(self, module: str, function: str, *args: Any) -> None:
        """Call a function with this version's code, in a process of its own."""
        process = start(self.folder, module, function, *args)
        printed, _ = process.communicate()
        assert process.returncode == 0, printed


def start(code: Path, module: str, function: str, *args: Any) -> subprocess.Popen[str]:
    """Call a function in a new process, with the package textsim_db of a folder."""
    script = f"from {module} import *; {function}({', '.join(map(repr, args))})"
    environment = os.environ | {"PYTHONPATH": f"{code}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-c", script]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(command, cwd=code, env=environment, text=True, **pipes)


RELEASES = [Release(wheel) for wheel in sorted((ROOT / "tests" / "released").glob("*.whl"))]
each_release = pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.version)
