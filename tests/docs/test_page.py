"""The reader of pages: which blocks it runs, which outputs it compares."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.page import PageError, Snippet, read_snippets
from tests.docs.session import SnippetFailed, page_session


def snippets_of(text: str, folder: Path) -> list[Snippet]:
    page = folder / "page.md"
    page.write_text(text, "utf-8")
    return read_snippets(page)


def test_a_comment_is_run_or_says_what_is_not(tmp_path: Path) -> None:
    text = "<!-- run: sh\ntouch a\n-->\n\n<!-- not run: needs Docker -->\n```ini\n[Unit]\n```\n"
    assert snippets_of(text, tmp_path) == [Snippet("sh", "touch a", 2)]


@pytest.mark.parametrize(
    "text",
    [
        "```ini\n[Unit]\n```\n",
        "```\nx\n```\n",
        "```text\nx\n```\n",
        "```sh\ntrue\n```\n\n```text\nx\n```\n",
        "```python\nprint(1)\n```\n\nThis prints:\n\n```text\n1\n```\n",
        "<!-- not run: -->\n```ini\n[Unit]\n```\n",
    ],
)
def test_a_block_that_is_not_run_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(PageError, match=r"page\.md:\d+: "):
        snippets_of(text, tmp_path)


def test_a_page_is_one_session(tmp_path: Path) -> None:
    with page_session(tmp_path / "page.md", tmp_path, "dbname=none") as session:

        def run(language: str, code: str, expected: str | None = "") -> str:
            return session.run(Snippet(language, code, 1, expected))

        assert run("sh", "mkdir a; cd a; sleep 600 &\nx=1", None) == ""
        assert run("console", 'basename "$PWD$x"') == "a1\n"
        assert run("console", "echo wrong >&2; false") == "wrong\n"
        assert run("python", "x = 1") == ""
        assert run("python", "print(x); {}[1]") == "1\nKeyError: 1\n"
        for language, code in [
            ("sh", "false"),
            ("python", "{}[1]"),
            ("sql", "SELECT 1"),
            ("sh", "exit"),
        ]:
            with pytest.raises(SnippetFailed):
                run(language, code, None)
