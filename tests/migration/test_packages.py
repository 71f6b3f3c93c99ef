"""The files of a release: what they contain, and that they work in an empty environment."""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
import tomllib
from pathlib import Path

import psycopg
import pytest
import yaml

from scripts import publication, release
from scripts.release import run
from textsim_db import __version__

pytestmark = pytest.mark.more

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """All files of a release; the wheel is the first."""
    folder = tmp_path_factory.mktemp("release")
    (folder / "dist").mkdir()
    return release.build(release.export(folder / "source"), folder / "dist", folder)


def lend_kernels(site: Path) -> None:
    """Copy the compiled kernels of the checkout to the same sources: to compile them takes a minute."""
    for file in (ROOT / "textsim_db").rglob("*.*"):
        copy = site / file.relative_to(ROOT)
        if file.suffix in (".nbc", ".nbi"):
            copy.parent.mkdir(exist_ok=True)
            shutil.copy2(file, copy)
        elif file.suffix == ".py":
            shutil.copystat(file, copy)  # Numba compares the time of the source


def test_the_files_are_as_an_index_and_a_user_expect(files: list[Path], tmp_path: Path) -> None:
    wheel, sdist, script, extension, image, _ = files
    assert {"textsim_db/py.typed", "textsim_db/_sql/version.sql"} <= release.contents(wheel).keys()
    dist_info = wheel.name.removesuffix("-py3-none-any.whl") + ".dist-info"
    entry_points = release.contents(wheel)[f"{dist_info}/entry_points.txt"]
    assert b"textsim = textsim_db.cli:main" in entry_points
    assert "extension/textsim.control" in release.contents(extension)
    assert {"Dockerfile", ".dockerignore", "constraints.txt"} <= release.contents(image).keys()
    assert not any(name.startswith("tests") for name in release.contents(image))
    assert PROJECT["requires-python"] == ">=3.11"
    assert next(iter(release.pythons())) == "3.11"  # the oldest, as requires-python says

    (tmp_path / "a").write_text(f"made in {ROOT}/a", encoding="utf-8")
    wrong = release.pack(tmp_path / sdist.name, tmp_path, ["a"])
    found = release.faults(wrong)
    assert f"{sdist.name}: README.md is missing" in found
    assert f"{sdist.name}: a does not belong in it" in found
    assert f"{sdist.name}: a has a path of this machine" in found
    assert f"{sdist.name}: the licence is missing" in found
    for text, permitted in (("LGPL-3.0-only", True), ("MIT AND GPL-2.0-only", False), ("", False)):
        assert bool(release.PERMITTED.match(text)) is permitted, text
    assert release.licences()["psycopg"] == "LGPL-3.0-only"
    assert script.read_bytes().startswith(release.SHORT_LICENCE)


def test_registries_get_descriptions_of_the_files(files: list[Path]) -> None:
    _, sdist, *_, pgxn = files
    server, extension = publication.mcp_server(), publication.pgxn_metadata()
    recipe = publication.conda_recipe(sdist)
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", server["name"])
    assert len(server["description"]) <= 100
    (package,) = server["packages"]
    assert {package["version"], extension["version"], recipe["package"]["version"]} == {__version__}
    assert package["identifier"] in PROJECT["scripts"]  # uvx runs the script of this name
    names = release.contents(pgxn)
    (provided,) = extension["provides"].values()
    assert {f"{pgxn.stem}/{name}" for name in ("META.json", provided["file"])} <= names.keys()
    assert recipe["source"]["sha256"] == hashlib.sha256(sdist.read_bytes()).hexdigest()
    assert len(recipe["requirements"]["run"]) == len(PROJECT["dependencies"]) + 1
    assert bool(publication.missing()) is ("urls" not in PROJECT or "authors" not in PROJECT)


def test_the_workflow_publishes_by_trusted_publishing() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text("utf-8"))
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
    commands = {step["run"] for step in build["steps"] if "run" in step}
    assert {"make test", "make release"} <= commands
    assert publish["permissions"] == {"id-token": "write"}
    assert not any("password" in str(step) for step in publish["steps"])
    publishing = (ROOT / "PUBLISHING.md").read_text("utf-8")
    assert f"`{publish['environment']}`" in publishing


def test_the_wheel_and_the_sql_file_work_in_an_empty_environment(
    files: list[Path], empty_database_url: str, tmp_path: Path
) -> None:
    options = ("--constraint", ROOT / "constraints.txt")
    commands = release.install(sys.executable, files[0], tmp_path / "empty", *options)
    python, textsim = commands / "python", commands / "textsim"
    program = "import sysconfig; print(sysconfig.get_path('purelib'))"
    lend_kernels(Path(run(python, "-c", program).strip()))
    release.check_wheel(commands, tmp_path)
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute(files[2].read_bytes())
    code = (
        "import sys, textsim_db as ts; db = ts.connect(sys.argv[1]); "
        "corpus = db.create_corpus('c'); corpus.add('a', 'a text of some words'); "
        "print(corpus.query('a text of some words'))"
    )
    assert "similarity=1.0" in run(python, "-c", code, empty_database_url, cwd=tmp_path)
    run(textsim, "status", "--database-url", empty_database_url, cwd=tmp_path)
