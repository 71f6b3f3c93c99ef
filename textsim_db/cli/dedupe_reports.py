"""The reports of textsim dedupe: lines of JSON for programs, a page for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Any

from textsim_db.cli.options import misused
from textsim_db.errors import shown

if TYPE_CHECKING:
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


def _write_line(file: IO[bytes], cluster: dict[str, Any]) -> None:
    # UTF-8 has no lone surrogates, so they are escaped as in JSON.
    line = json.dumps(cluster, ensure_ascii=False) + "\n"
    file.write(line.encode("utf-8", "backslashreplace"))
