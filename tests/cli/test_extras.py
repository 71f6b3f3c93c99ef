"""Every command in an installation without extras: it works, or says first what it needs."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

import textsim_db
from tests.support.commands import process
from tests.support.records import as_jsonl
from textsim_db.corpus.database import URL_VARIABLE

RECORDS = [{"id": i, "text": f"one two three four five six{mark}"} for i, mark in enumerate(".!")]

NEEDED = [
    ("parquet", "dedupe absent.jsonl -o out.parquet"),
    ("parquet", "dedupe absent.jsonl --output-kind parquet -o out"),
    ("parquet", "dedupe absent.jsonl absent.parquet -o out.jsonl"),
    ("parquet", "dedupe in.jsonl -o out.jsonl --judgements in.parquet"),
    ("parquet", "index new in.jsonl in.parquet --create"),
    ("parquet", "contamination in.jsonl in.parquet --against absent"),
    ("parquet", "judgements import absent in.parquet"),
    ("languages", "dedupe absent.jsonl -o out.jsonl --stop-words auto"),
    ("languages", "index new in.jsonl --create --language auto"),
    ("languages", "corpus create new --stop-words auto"),
    ("plot", "plan absent --plot plan.svg"),
    ("plot", "plan --plot plan.svg"),
    ("prometheus", "worker --metrics-port 9"),
    ("review", "review absent"),
    ("review", "review --report absent.jsonl --input absent.parquet"),
    ("mcp", "mcp absent"),
]
"""The extra that a command needs; each command has a fault besides, or something that it must not do."""
WITHOUT_ADDRESS = ["status", "index new in.jsonl --create", "dedupe in.jsonl -o o --against new"]


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


@pytest.mark.more
def test_without_extras(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    link_base_packages(packages)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    Path("in.jsonl").write_bytes(as_jsonl(RECORDS))
    Path("in.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    Path("in.parquet").write_bytes(b"PAR1")

    def run(command: str, url: str | None = database_url) -> tuple[int, str]:
        started = process(*command.split(), url=url, packages=packages)
        _, told = started.communicate()
        assert "Traceback" not in told, (command, told)
        return started.returncode, told

    for command in ("dedupe in.jsonl --report r.html", "compare in.jsonl in.jsonl --html p.html"):
        status, told = run(command)
        assert status == 0, (command, told)
    for page in ("r.html", "p.html"):
        assert "</html>" in Path(page).read_text("utf-8")
    needed = [*NEEDED, *(("embedded", command) for command in WITHOUT_ADDRESS)]
    if sys.version_info < (3, 14):  # which reads Zstandard by itself
        needed.append(("parquet", "dedupe absent.jsonl in.jsonl.zst -o out.jsonl"))
    for extra, command in needed:
        status, told = run(command, None if extra == "embedded" else database_url)
        assert status == 2, (command, told)
        assert f"'.[{extra}]'" in told.splitlines()[0], (command, told)
        assert "absent.jsonl" not in told, (command, told)
    assert run("corpus list --json")[0] == 0
    made = {path.name for path in Path().iterdir()}
    assert made == {"packages", "in.jsonl", "in.jsonl.zst", "in.parquet", "r.html", "p.html"}
