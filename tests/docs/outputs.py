"""Outputs shown on a page beside outputs of a run."""

from __future__ import annotations

import doctest

from tests.docs.page import Snippet

_FLAGS = doctest.ELLIPSIS | doctest.REPORT_NDIFF


def output_matches(snippet: Snippet, output: str) -> bool:
    """Compare an output with the one shown, where `...` stands for any text.

    A block of SQL or sh without an output shown may print anything. Python may print nothing there.
    """
    if snippet.expected is None and snippet.language != "python":
        return True
    return _matches(tidy(snippet.expected or ""), tidy(output))


def describe_difference(snippet: Snippet, output: str) -> str:
    example = doctest.Example(snippet.code, tidy(snippet.expected or ""))
    return doctest.OutputChecker().output_difference(example, tidy(output), _FLAGS)


def tidy(output: str) -> str:
    """Drop spaces at the ends of lines, and empty lines at both ends."""
    text = "\n".join(line.rstrip() for line in output.splitlines()).strip("\n")
    return f"{text}\n" if text else ""


def merge_outputs(shown: str, output: str) -> str:
    """Return the output, with the `...` of those shown lines that still match their line."""
    old, new = tidy(shown).splitlines(), tidy(output).splitlines()
    if len(old) != len(new):
        return tidy(output)
    lines = [a if _matches(a, b) else b for a, b in zip(old, new, strict=True)]
    return "".join(f"{line}\n" for line in lines)


def _matches(expected: str, output: str) -> bool:
    return doctest.OutputChecker().check_output(expected, output, _FLAGS)
