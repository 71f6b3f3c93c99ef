"""The reports of textsim dedupe: lines of JSON for programs, a page for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

from textsim_db.cli.options import misused
from textsim_db.errors import shown
from textsim_db.measures.word_diff import Change, Part
from textsim_db.settings.corpus_settings import Guard

if TYPE_CHECKING:
    from textsim_db.corpus.removal_summary import Example, RemovalSummary
    from textsim_db.corpus.removals import Deduplication

LINES, _PAGE = ".jsonl", ".html"


def is_page(report: str | None) -> bool:
    return report is not None and report.endswith(_PAGE)


def check_report(report: str, *endings: str) -> None:
    """Raise an error if the name of a report has none of the endings, by default .jsonl and .html."""
    allowed = endings or (LINES, _PAGE)
    if not report.endswith(allowed):
        raise misused("--report", f"{shown(report)} does not end in {' or '.join(allowed)}")


def write_clusters(
    path: str,
    result: Deduplication,
    keys: Sequence[str | None],
    file_of: Callable[[int], str | None],
) -> None:
    """Write a line of JSON for each cluster.

    keys: the key of each record. file_of: returns the file of a record if there are several files.
    """
    from textsim_db.files.records import replacing

    def document(number: int) -> dict[str, Any]:
        names = {"key": keys[number], "file": file_of(number)}
        return {"record": number + 1} | {k: v for k, v in names.items() if v is not None}

    with replacing(path) as file:
        for removals in result.clusters():
            removed = [{**document(r.number), "similarity": r.similarity} for r in removals]
            _write_line(file, {"kept": document(removals[0].kept), "removed": removed})
        by_standing: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for number, standing in sorted(result.standing.items()):
            removed = by_standing.setdefault(standing[:2], [])
            removed.append({**document(number), "similarity": standing.similarity})
        for (corpus, key), removed in by_standing.items():
            _write_line(file, {"kept": {"corpus": corpus, "key": key}, "removed": removed})


def summary_lines(
    summary: RemovalSummary, guards: Collection[str], name_of: Callable[[int], str]
) -> Iterator[str]:
    """Yield what was removed, unless all removed documents have the shingles of the kept ones.

    guards: those of the run. name_of: returns the name of a record.
    """
    from textsim_db.corpus.removal_summary import TENTHS

    below = [f"{n:,} from {i / TENTHS}" for i, n in enumerate(summary.tenths) if n and i < TENTHS]
    if not below:
        return
    same = [f"{summary.tenths[TENTHS]:,} at 1"] if summary.tenths[TENTHS] else []
    yield f"similarity of the removed documents: {', '.join(below + same)}"
    yield "the least similar:"
    yield from _example_lines(summary.lowest, name_of)
    if summary.largest_size > len(summary.lowest) and summary.largest != summary.lowest:
        yield f"of the largest cluster, from which {summary.largest_size:,} were removed:"
        yield from _example_lines(summary.largest, name_of)
    differ = [f"only {kind} differ in {n:,}" for kind, n in summary.distinctions.items()]
    if summary.begin_otherwise:
        differ.append(f"the first words, such as a name, differ in {summary.begin_otherwise:,}")
    if differ:
        yield f"of {summary.compared:,} compared word by word, {', '.join(differ)}"
        kinds = [guard for guard in Guard if guard in summary.distinctions and guard not in guards]
        ways = [f"--guard {','.join(kinds)}"] if kinds else []
        yield (
            f"what keeps such documents apart: {' or '.join([*ways, '--scope COLUMN'])}; "
            "--report removed.html shows them side by side"
        )


_SHOWN_PARTS = 3
_SHOWN_CHARACTERS = 40


def _example_lines(examples: list[Example], name_of: Callable[[int], str]) -> Iterator[str]:
    for (removed, kept, similarity), parts, *_ in examples:
        differ = [_of_part(part) for part in parts if part.change != Change.SAME]
        more = [f"{len(differ) - _SHOWN_PARTS} more"] if len(differ) > _SHOWN_PARTS else []
        what = "; ".join(differ[:_SHOWN_PARTS] + more) or "has the same words"
        yield f"  {similarity:.4f}  {name_of(removed)} {what} (kept: {name_of(kept)})"


def _of_part(part: Part) -> str:
    """Say how the removed document differs from the kept one, part.a."""
    kept, removed = (f'"{_cut(words.strip())}"' for words in (part.a, part.b))
    if part.change == Change.REMOVED:
        return f"lacks {kept}"
    return f"adds {removed}" if part.change == Change.ADDED else f"has {removed} for {kept}"


def _cut(words: str) -> str:
    return words if len(words) <= _SHOWN_CHARACTERS else f"{words[: _SHOWN_CHARACTERS - 3]}..."


def _write_line(file: IO[bytes], cluster: dict[str, Any]) -> None:
    # UTF-8 has no lone surrogates, so they are escaped as in JSON.
    line = json.dumps(cluster, ensure_ascii=False) + "\n"
    file.write(line.encode("utf-8", "backslashreplace"))
