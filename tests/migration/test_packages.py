"""The wheel and the sdist: what they contain, and that they work in an empty environment."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

pytestmark = pytest.mark.more

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel, which is built from the sdist, and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def tracked(*folders: str) -> set[str]:
    """Return the files of folders that belong to the project."""
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", *folders)
    return {name for name in listed.splitlines() if (ROOT / name).exists()}


def lend_kernels(site: Path) -> None:
    """Copy the compiled kernels of the checkout to the same sources: to compile them takes a minute."""
    for file in (ROOT / "textsim_db").rglob("*.*"):
        copy = site / file.relative_to(ROOT)
        if file.suffix in (".nbc", ".nbi"):
            copy.parent.mkdir(exist_ok=True)
            shutil.copy2(file, copy)
        elif file.suffix == ".py":
            shutil.copystat(file, copy)  # Numba compares the time of the source


def test_the_metadata_is_as_an_index_expects(packages: tuple[Path, Path]) -> None:
    run(sys.executable, "-m", "twine", "check", "--strict", *packages)
    assert PROJECT["requires-python"] == ">=3.11"
    pythons = [
        c for c in PROJECT["classifiers"] if c.startswith("Programming Language :: Python :: 3.")
    ]
    assert pythons[0].endswith("3.11")  # the oldest, as requires-python says


def test_the_wheel_has_the_package_the_schema_and_nothing_else(packages: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(packages[0]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        entry_points = wheel.read(f"textsim_db-{PROJECT['version']}.dist-info/entry_points.txt")
        licences = [name for name in wheel.namelist() if "/licenses/" in name]
    assert b"textsim = textsim_db.cli:main" in entry_points
    assert [name.rpartition("/")[2] for name in licences] == PROJECT["license-files"]
    expected = {
        f"textsim_db/_{name}" if name.startswith(("sql/", "migrations/")) else name
        for name in tracked("textsim_db", "sql", "migrations")
    }
    assert names == expected
    assert "textsim_db/py.typed" in names


def test_the_sdist_has_what_builds_and_tests_it(packages: tuple[Path, Path]) -> None:
    with tarfile.open(packages[1]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert names - {"PKG-INFO"} == {n for n in tracked() if not n.startswith(".ci/")}


def test_the_wheel_works_in_an_empty_environment(
    packages: tuple[Path, Path], empty_database_url: str, tmp_path: Path
) -> None:
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "empty")
    python, textsim = (tmp_path / "empty" / "bin" / name for name in ("python", "textsim"))
    # Python compiles the modules that it imports; pip would compile those of all packages.
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile")
    run(*pip, "--constraint", ROOT / "constraints.txt", packages[0])
    lend_kernels(
        Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    )
    assert run(textsim, "--version", cwd=tmp_path) == f"textsim-db {version('textsim-db')}\n"
    assert "CREATE SCHEMA" in run(textsim, "db", "sql", cwd=tmp_path)
    code = (
        "import sys, textsim_db as ts; ts.install(sys.argv[1]); db = ts.connect(sys.argv[1]); "
        "corpus = db.create_corpus('c'); corpus.add('a', 'a text of some words'); "
        "print(corpus.query('a text of some words'))"
    )
    assert "similarity=1.0" in run(python, "-c", code, empty_database_url, cwd=tmp_path)
    run(textsim, "status", "--database-url", empty_database_url, cwd=tmp_path)
