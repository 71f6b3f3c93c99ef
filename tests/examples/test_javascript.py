"""The example in JavaScript on PGlite and on a server, which is the code of its page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.page import ROOT
from textsim_db.db import schema

pytest.importorskip("mkdocs", reason="the playground is built by MkDocs")
from scripts import playground

EXAMPLE = ROOT / "examples" / "javascript"
PAGE = ROOT / "docs" / "how-to" / "from-javascript.md"


def test_the_page_shows_the_example() -> None:
    blocks = re.findall(r"^```js\n(.*?)^```", PAGE.read_text("utf-8"), re.S | re.M)
    example = (EXAMPLE / "tickets.js").read_text("utf-8")
    assert len(blocks) > 5
    assert "\n".join(blocks) == example.partition("\n\n")[2]


@pytest.mark.more
def test_the_tests_of_the_example_pass(empty_database_url: str, tmp_path: Path) -> None:
    folder = tmp_path / "javascript"
    try:
        playground.install(folder)
    except playground.LeftOut as reason:
        pytest.skip(f"the packages of the example are missing: {reason}")
    for name in ("tickets.js", "tickets.test.js"):
        shutil.copy(EXAMPLE / name, folder)
    (folder / "textsim.sql").write_text(schema.script(has_transaction=False), "utf-8")
    done = subprocess.run(
        ["node", "--test"],
        cwd=folder,
        env={**os.environ, "DATABASE_URL": empty_database_url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"^\W+ pass 2$", done.stdout, re.M), done.stdout
