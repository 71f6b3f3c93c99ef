"""Count the sentences of the project, and list the sentences that readers stumble over.

    python -m scripts.plain_english                  # counts, and each fault with its place
    python -m scripts.plain_english textsim_db/db    # of some files or folders

Two kinds of fault can be counted: *inverted* sentences, which open with the clause that should follow,
and *riddles*, phrases that make a reader go back. A test keeps both at zero.
"""

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
LONG = 25
"""Words of a sentence from which it counts as long."""

INVERTED = re.compile(
    r"(Who|Whoever|What|Whatever|Where|Wherever|So many|So much|Of those|Of these|Of equals|Of which|"
    r"Whose|Nor|Neither|Only then|Such)\b(?!.*\?$)"
)
RIDDLES = re.compile(
    r"\b(is|are|was|were|be|been) told\b|\bbut for\b|\b(is|are|was) what\b"
    r"|\bpass(es|ed|ing)? (over|by)\b|\bfor nothing\b|\bin hand\b|\bas it were\b|\bhas no say\b"
    r"|\bthat which\b|\bthose of which\b|\b(is|are) not to\b|\b(is|are) to be\b|\bno other than\b"
    r"|\bgives? away\b|\bwaits? out\b|\b(with|of|by) what\b|\bto what\b(?! extent)"
    r"|\bwhat was there\b|\bthe likes?\b|\bstrangers?\b|\bso many\b|\bas the case\b"
    r"|\bcomes? of\b|\bmay say\b|\bsays? so\b",
    re.IGNORECASE,
)
NOT_PROSE = re.compile(r"^(noqa|type:|fmt:|pragma|ruff:|mypy:|!|---|===)")


class Paragraph(NamedTuple):
    """Prose of a file: a docstring's or page's paragraph, a comment's block, a message."""

    path: Path
    line: int
    text: str


def python_paragraphs(path: Path) -> Iterator[Paragraph]:
    """Yield the docstrings' paragraphs and the blocks of comments."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield from _blocks(path, node.lineno, _items_of_sections(node.value.value))
    block: list[str] = []
    start = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        text = token.string.lstrip("#").strip()
        alone = token.line.lstrip().startswith("#")
        if block and (token.start[0] != last + 1 or not alone):
            yield from _blocks(path, start, "\n".join(block))
            block = []
        if not block:
            start = token.start[0]
        last = token.start[0]
        block.append("" if NOT_PROSE.match(text) else text)
    yield from _blocks(path, start, "\n".join(block))


def _items_of_sections(docstring: str) -> str:
    """Mark each argument and error of a docstring's sections as an item; leave out examples."""
    prose = re.sub(
        r"^ *((Args|Raises|Examples):|(>>>|\.\.\.) .*)$", "", docstring, flags=re.MULTILINE
    )
    return re.sub(r"^(?= {8,}`?\w+`?: )", "\x00", prose, flags=re.MULTILINE)


def sql_paragraphs(path: Path) -> Iterator[Paragraph]:
    """Yield the blocks of comments, and the texts of COMMENT ON."""
    source = path.read_text(encoding="utf-8")
    for comment in re.finditer(r"(?:^[ \t]*--.*\n)+|--.*", source, re.MULTILINE):
        line = source.count("\n", 0, comment.start()) + 1
        yield from _blocks(
            path, line, re.sub(r"^[ \t]*-+ ?", "", comment.group(), flags=re.MULTILINE)
        )
    for comment in re.finditer(
        r"COMMENT ON .*?\bIS\s+'((?:[^']|'')*)'((?:\s*'(?:[^']|'')*')*)", source, re.DOTALL
    ):
        line = source.count("\n", 0, comment.start(1)) + 1
        pieces = [comment.group(1), *re.findall(r"'((?:[^']|'')*)'", comment.group(2))]
        yield from _blocks(path, line, "".join(pieces).replace("''", "'"))


def markdown_paragraphs(path: Path) -> Iterator[Paragraph]:
    """Yield the paragraphs and items of lists, without code, tables and headings."""
    kept = []
    fenced = False
    for line in re.sub(
        r"<!--.*?-->", _only_newlines, path.read_text(encoding="utf-8"), flags=re.DOTALL
    ).split("\n"):
        fence = line.lstrip().startswith("```")
        item = re.match(r"\s*([-*]|\d+\.) ", line)
        prose = not (fenced or fence or line.startswith(("#", "|", "    ", ":::")))
        kept.append(("\x00" if item else "") + line if prose else "")
        fenced ^= fence
    yield from _blocks(path, 1, "\n".join(kept))


def _only_newlines(match: re.Match[str]) -> str:
    return "\n" * match.group().count("\n")


def _blocks(path: Path, line: int, text: str) -> Iterator[Paragraph]:
    """Yield what blank lines, or new items of a list, divide."""
    block: list[str] = []
    start = line
    for number, row in enumerate([*text.split("\n"), ""], line):
        if block and (not row.strip() or row.startswith("\x00")):
            yield Paragraph(path, start, " ".join(block))
            block = []
        if row.strip():
            if not block:
                start = number
            block.append(re.sub(r"^\s*([-*]|\d+\.) ", "", row.lstrip("\x00")).strip())


PARAGRAPHS = {".py": python_paragraphs, ".sql": sql_paragraphs, ".md": markdown_paragraphs}


def paragraphs(paths: list[Path]) -> Iterator[Paragraph]:
    """Yield the prose of these files."""
    for path in paths:
        yield from PARAGRAPHS[path.suffix](path)


def sentences(text: str) -> list[str]:
    """Split a paragraph after full stops, colons that end it, question and exclamation marks."""
    split = re.split(r"(?<=[.!?])[\"')*`]*\s+(?=[\"'(*`]*[A-Z0-9])", text)
    return [sentence for sentence in split if len(re.findall(r"[A-Za-z]{2,}", sentence)) >= 3]


def faults(sentence: str) -> list[str]:
    """Name the kinds of fault in a sentence, without its quoted code."""
    prose = re.sub(r"`[^`]*`|\"[^\"]*\"", "x", sentence).lstrip("*(_ ")
    kinds = ["inverted"] if INVERTED.match(prose) else []
    return kinds + (["riddle"] if RIDDLES.search(prose) else [])


def project_files(names: list[str]) -> list[Path]:
    """List the tracked files with prose, under these names."""
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *names],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\n")  # fmt: skip
    skipped = ("20_unicode.sql", "plain_english.py")
    return [
        ROOT / name
        for name in tracked
        if Path(name).suffix in PARAGRAPHS and not name.endswith(skipped)
    ]


def main() -> int:
    """Print the counts and the faults; return 1 if there are faults."""
    parser = argparse.ArgumentParser(
        description="count sentences, and list the sentences that readers stumble over"
    )
    parser.add_argument("paths", nargs="*", help="files or folders; the whole project by default")
    parser.add_argument(
        "--long", action="store_true", help=f"list sentences of over {LONG} words too"
    )
    arguments = parser.parse_args()
    blocks = list(paragraphs(project_files(arguments.paths)))
    counts = {"sentences": 0, f"over {LONG} words": 0, "inverted": 0, "riddle": 0}
    for block in blocks:
        for sentence in sentences(block.text):
            long = [f"over {LONG} words"] if len(sentence.split()) > LONG else []
            for kind in ("sentences", *long, *faults(sentence)):
                counts[kind] += 1
            for kind in faults(sentence) + (long if arguments.long else []):
                print(f"{block.path.relative_to(ROOT)}:{block.line}: {kind}: {sentence}")
    for kind, count in counts.items():
        print(f"{kind:>14} {count:6,} {100 * count / max(1, counts['sentences']):6.2f} %")
    return 1 if counts["inverted"] or counts["riddle"] else 0


if __name__ == "__main__":
    sys.exit(main())
