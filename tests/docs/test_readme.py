"""The README and the docs state facts in plain English; test_pages.py runs their examples."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from urllib.parse import unquote

import platformdirs
import pytest
import yaml
from platformdirs.unix import Unix

from scripts.plain_english import faults, paragraphs, project_files, sentences
from tests.docs.page import PAGES, ROOT
from textsim_db.db import embedded_server
from textsim_db.db.embedded_server import DATA_DIR_VARIABLE

README = (ROOT / "README.md").read_text("utf-8")
TEXTS = {page: page.read_text("utf-8") for page in PAGES}
START = ROOT / "docs" / "index.md"
LINK = re.compile(r"\]\(([^)\s]+)\)")
OUTSIDE = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(ROOT / name for name in ("benchmarks/README.md", "docs/llms.txt")),
]


def test_the_readme_is_short() -> None:
    assert len(README) <= 10_000
    two_screens, _, _ = README.partition("## Beside the alternatives")
    assert len(two_screens.splitlines()) <= 100


def test_the_two_commands_stand_first() -> None:
    block = re.search(r"^```\w+\n(.*?)^```", README, re.S | re.M)
    assert block
    commands = [line.split("#")[0].strip() for line in block[1].splitlines()]
    assert commands == ["make demo", "make test"]


@pytest.mark.parametrize(("page", "folder"), [(ROOT / "README.md", "docs/"), (START, "")])
def test_the_pages_are_linked_under_the_headings_of_the_site(page: Path, folder: str) -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    (groups,) = (each["How to"] for each in nav if "How to" in each)
    assert len(groups) == 7
    for group in groups:
        ((heading, pages),) = group.items()
        entry = re.search(rf"^[-|] {heading}\b.*?(?=^[-|] |\Z)", TEXTS[page], re.S | re.M | re.I)
        assert entry, heading
        linked = [folder + path for each in pages for path in each.values()]
        assert LINK.findall(entry[0]) == linked


@pytest.mark.parametrize("page", OUTSIDE, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_pages_outside_the_site_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text("utf-8")):
        address, _, anchor = link.partition("#")
        target = (page.parent / unquote(address)).resolve() if address else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub and MkDocs give to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.M)
    return {
        re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


def test_the_data_directory_is_where_the_docs_say(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_DATA_HOME", DATA_DIR_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(platformdirs, "user_data_path", lambda name: Unix(name).user_data_path)
    path = f"~/{embedded_server.data_dir().relative_to(Path.home()).as_posix()}"
    named = {found for text in TEXTS.values() for found in re.findall(r"~/\.local/[\w/-]+", text)}
    assert named
    assert all(name == path or name.startswith(f"{path}/") for name in named), named


def test_the_docs_name_the_address_of_the_compose_file() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
    address = compose["services"]["install"]["environment"]["TEXTSIM_DATABASE_URL"]
    pages = [text for text in TEXTS.values() if "docker compose up" in text]
    assert pages
    for text in pages:
        assert address.replace("@database", ":$TEXTSIM_PASSWORD@127.0.0.1:5432") in text


def test_python_that_no_page_runs_can_be_parsed() -> None:
    not_run = re.compile(r"^<!-- not run: .* -->\n```python\n(.*?)^```", re.S | re.M)
    blocks = [block for text in TEXTS.values() for block in not_run.findall(text)]
    assert blocks
    for block in blocks:
        ast.parse(block)


@pytest.mark.more
def test_no_sentence_is_inverted_or_a_riddle() -> None:
    faulty = [
        f"{block.path.relative_to(ROOT)}:{block.line}: {sentence}"
        for block in paragraphs(project_files([]))
        for sentence in sentences(block.text)
        if faults(sentence)
    ]
    assert not faulty


ROOT = Path(__file__).parents[2]
FROM_AN_INDEX = re.compile(r"""pip install (--\S+ )*['"]?textsim[-_]db""")


def test_nobody_is_advised_to_install_a_package_that_is_not_published() -> None:
    files = [
        ROOT / "README.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "textsim_db").rglob("*.py"),
        *(ROOT / "examples").rglob("*.md"),
    ]
    assert len(files) > 200
    assert [str(file) for file in files if FROM_AN_INDEX.search(file.read_text("utf-8"))] == []
