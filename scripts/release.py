"""Build what a release consists of into dist/, check it, and write its checksums; nothing is published.

    python -m scripts.release

A check that fails ends it with exit status 1. The same commit gives the same files.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts import publication
from textsim_db import __version__
from textsim_db.db import schema

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LICENCE = (ROOT / "LICENSE").read_bytes()
SHORT_LICENCE = f"-- SPDX-License-Identifier: {PROJECT['license']}\n".encode()
HELD_BY = {
    "textsim_db-*.whl": ("textsim_db", "sql", "migrations"),
    "textsim_db-*.tar.gz": (".", ":!.ci", ":!tests/released"),
}
"""The packages have all files of these folders, and no others; as git names folders."""
PERMITTED = re.compile(
    r"(?!.*(\bA?GPL|GNU (Affero )?General)).*\b(MIT|0?BSD|Apache|ISC|LGPL|MPL|PSF|Python Software)\b"
)
"""The licences of run-time dependencies: a program of any licence may import them."""


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Return what a command prints; raises SystemExit with its errors if it fails."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"error: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def tracked(*folders: str) -> set[str]:
    """Return the files of folders that belong to the project."""
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", *folders)
    return {name for name in listed.splitlines() if (ROOT / name).exists()}


def export(folder: Path) -> Path:
    """Copy the files of the project: a checkout may hold others, which the builders would take."""
    for name in tracked():
        copy = folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy)
    return folder


def build_packages(source: Path, folder: Path) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from the sdist; return the wheel and the sdist."""
    run(sys.executable, "-m", "build", "--outdir", folder, source, cwd=folder)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("textsim_db-*.tar.gz")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    return wheel, sdist


def build_extension(source: Path, folder: Path) -> Path:
    """Pack the extension, as a folder for extension_control_path."""
    with tempfile.TemporaryDirectory() as root:
        makefile = source / "sql" / "extension"
        run("make", "-C", makefile, "install", f"DESTDIR={root}", "SHAREDIR=")
        shutil.copy(source / "LICENSE", root)
        names = [path.relative_to(root).as_posix() for path in Path(root).rglob("*")]
        return pack(folder / f"textsim-extension-{__version__}.tar.gz", Path(root), names)


def build_context(source: Path, folder: Path) -> Path:
    """Pack what `docker build` would be sent; `docker build - < FILE` takes it."""
    from docker.utils.build import exclude_paths  # `make test` does not install it

    lines = (source / ".dockerignore").read_text("utf-8").splitlines()
    ignored = [line for line in lines if not line.startswith("#")]
    names = exclude_paths(str(source), [*ignored, "!.dockerignore"])
    return pack(folder / f"textsim-image-{__version__}.tar.gz", source, names)


def pack(file: Path, root: Path, names: Iterable[str]) -> Path:
    """Pack files of a folder, without the times, owners and modes that this machine gave them."""
    with (
        file.open("wb") as written,
        gzip.GzipFile("", "wb", fileobj=written, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name in sorted(name for name in names if (root / name).is_file()):
            member = tarfile.TarInfo(name)
            member.size = (root / name).stat().st_size
            with (root / name).open("rb") as data:
                archive.addfile(member, data)
    return file


def contents(file: Path) -> dict[str, bytes]:
    """Return the files of an archive; a file that is no archive contains itself."""
    if file.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(file) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist()}
    if file.suffix != ".gz":
        return {file.name: file.read_bytes()}
    with tarfile.open(file) as archive:
        members = ((member.name, archive.extractfile(member)) for member in archive)
        return {name: data.read() for name, data in members if data is not None}


def faults(file: Path) -> list[str]:
    """Return what is missing in a file of the release, or should not be in it."""
    files = contents(file)
    problems = []
    for folders in (held for pattern, held in HELD_BY.items() if file.match(pattern)):
        names = {
            re.sub(r"^textsim_db(-[\d.]+/|/_(?=sql/|migrations/))", "", name)
            for name in files
            if ".dist-info/" not in name
        }
        expected = tracked(*folders)
        problems += [f"{name} is missing" for name in expected - names]
        problems += [f"{name} does not belong in it" for name in names - expected - {"PKG-INFO"}]
    if LICENCE not in files.values() and SHORT_LICENCE not in files.get(file.name, b""):
        problems.append("the licence is missing")
    machine = [f"{folder}/".encode() for folder in (ROOT, Path.home(), sys.prefix)]
    problems += [
        f"{name} has a path of this machine"
        for name, data in files.items()
        if any(folder in data for folder in machine)
    ]
    return sorted(f"{file.name}: {fault}" for fault in problems)


def licences() -> dict[str, str]:
    """Return the licence of each package that an installation of textsim-db has, by its metadata."""
    extras = metadata.metadata("textsim-db").get_all("Provides-Extra") or []
    reached = {("textsim-db", frozenset(extras))}
    waiting = list(reached)
    licence_of = {}
    while waiting:
        name, wanted = waiting.pop()
        said = metadata.metadata(name)
        classes = [c.split(" :: ")[-1] for c in said.get_all("Classifier") or [] if "License" in c]
        licence_of[name] = said["License-Expression"] or ", ".join(classes) or said["License"] or ""
        for needed in map(Requirement, metadata.requires(name) or []):
            package = (canonicalize_name(needed.name), frozenset(needed.extras))
            marker = needed.marker
            if marker is None or any(marker.evaluate({"extra": one}) for one in (*wanted, "")):
                waiting += {package} - reached
                reached.add(package)
    return licence_of


def pythons() -> dict[str, str | None]:
    """Return the command of each Python that the project supports, or None if it is not here."""
    if shutil.which("pyenv"):  # its commands run only if their version is named
        os.environ["PYENV_VERSION"] = ":".join(run("pyenv", "versions", "--bare").split())
    versions = [c.split(" :: ")[-1] for c in PROJECT["classifiers"] if "Python :: 3." in c]
    return {version: shutil.which(f"python{version}") for version in versions}


def install(python: str | Path, wheel: Path, folder: Path, *options: str | Path) -> Path:
    """Install the wheel in a new environment; return the folder of its commands."""
    run(python, "-m", "venv", folder)
    pip = (
        folder / "bin" / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
    )
    run(*pip, *options, wheel, cwd=folder)
    return folder / "bin"


def check_wheel(commands: Path, folder: Path) -> None:
    """Do what the README shows without a database, and print the version and the schema."""
    readme = (ROOT / "README.md").read_text("utf-8")
    blocks = re.findall(r"^```(?:sh|python|text)\n(.*?)^```", readme, re.S | re.M)
    in_memory = next(i for i, block in enumerate(blocks) if "ts.pairs(" in block)
    shell, python, shown = blocks[0], *blocks[in_memory : in_memory + 2]
    run("sh", "-c", shell, cwd=folder)
    outputs = {
        ("python", "-c", python): shown,
        ("textsim", "--version"): f"textsim-db {__version__}\n",
        ("textsim", "db", "sql"): schema.script(),
    }
    for (program, *arguments), output in outputs.items():
        if (printed := run(commands / program, *arguments, cwd=folder)) != output:
            raise SystemExit(f"error: {program} {arguments} printed {printed[:500]}")


def build(source: Path, dist: Path, folder: Path) -> list[Path]:
    """Build all files of the release, and check what they contain; the wheel is the first."""
    wheel, sdist = build_packages(source, dist)
    script = dist / f"textsim-{__version__}.sql"
    script.write_bytes(SHORT_LICENCE + schema.script().encode())
    image = build_context(source, dist)
    extension = build_extension(source, dist)
    sources = [*sorted(tracked("sql")), "LICENSE"]
    pgxn = publication.write_pgxn(source, sources, dist / f"textsim-{__version__}.zip")
    check_pgxn(pgxn, extension, folder)
    files = [wheel, sdist, script, extension, image, pgxn]
    if found := [fault for file in files for fault in faults(file)]:
        raise SystemExit("\n".join(["error: the files are not as a release needs them", *found]))
    (folder / "image").mkdir()
    run("tar", "-xf", image, "-C", folder / "image")
    run(sys.executable, "-m", "build", "--wheel", "-o", folder, folder / "image", cwd=folder)
    if (folder / wheel.name).read_bytes() != wheel.read_bytes():
        raise SystemExit("error: the image would have another wheel")
    return files


def check_pgxn(archive: Path, extension: Path, folder: Path) -> None:
    """Install the extension from PGXN's archive, and compare it with the packed extension."""
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(folder)
    root = folder / "installed"
    run("make", "-C", folder / archive.stem, "install", f"DESTDIR={root}", "SHAREDIR=")
    installed = {f"extension/{file.name}": file.read_bytes() for file in root.rglob("*.*")}
    if installed != {name: data for name, data in contents(extension).items() if name != "LICENSE"}:
        raise SystemExit("error: PGXN's archive installs another extension")


def write_descriptions(wheel: Path, sdist: Path, folder: Path) -> list[Path]:
    """Write the files by which registries describe the release."""
    commands = install(sys.executable, wheel, folder / "described")
    written = {
        "server.json": publication.mcp_server(),
        "recipe.yaml": publication.conda_recipe(sdist),
    }
    for name, value in written.items():
        (sdist.parent / name).write_bytes(publication.as_json(value))
    sbom = sdist.parent / f"{wheel.stem}.cdx.json"
    publication.write_sbom(commands / "python", sbom)
    return [sbom, *(sdist.parent / name for name in written)]


def main() -> None:
    """Build, check, and print."""
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir()
    print(f"textsim-db {__version__}, {run('git', 'describe', '--always', '--dirty')}", end="")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = build(export(folder / "source"), dist, folder)
        known = licences()
        if refused := {name: text for name, text in known.items() if not PERMITTED.match(text)}:
            raise SystemExit(f"error: licences that may not permit every use: {refused}")
        print(f"{len(known)} packages at run time, with licences that permit every use")
        for version, python in pythons().items():
            start = time.monotonic()
            if python:
                check_wheel(install(python, files[0], folder / version), folder)
            tried = f"works, after {time.monotonic() - start:.0f} s" if python else "was not found"
            print(f"Python {version} {tried}", flush=True)
        files += write_descriptions(files[0], files[1], folder)
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (dist / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    for file, line in zip(files, sums, strict=True):
        print(f"{file.stat().st_size:>10,}  {line}", end="")
    for needed in publication.missing():
        print(f"missing before a publication: {needed}")


if __name__ == "__main__":
    main()
