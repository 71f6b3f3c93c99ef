"""The reports of textsim dedupe: lines of JSON for programs, a page for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any

from textsim_db.cli.options import misused
from textsim_db.errors import shown

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.dedupe.by_temporary_corpus import Deduplication, Rule

LINES, _PAGE = ".jsonl", ".html"


def is_page(report: str | None) -> bool:
    """Say whether a report is a page."""
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


class Page:
    """A page that shows the removed records."""

    def __init__(self, result: Deduplication, rule: Rule, corpora: Sequence[Corpus]) -> None:
        """Choose what is shown, and read documents of corpora before added records replace them."""
        from textsim_db.review.report_pages import choose_removals, read_documents

        self._result = result
        self._rule = rule
        self._shown = choose_removals(result)
        self._documents = read_documents(self._shown, corpora)

    def numbers(self) -> list[int]:
        """Return the places of the records that the page shows."""
        named = {number for pair in self._shown.pairs() for number in pair[:2]}
        return sorted(number for number in named if isinstance(number, int))

    def write(
        self,
        path: str,
        title: str,
        texts: Iterable[str | None],
        keys: Sequence[str | None],
        faults: tuple[Sequence[str], bool],
    ) -> None:
        """Write the page.

        Args:
            path: the file that is written.
            title: the heading of the page.
            texts: the texts of all records in order; the page shows some of them.
            keys: the keys of all records in order.
            faults: the reasons why records were not compared, and whether these records are kept.
        """
        from textsim_db.files.records import replacing
        from textsim_db.review.report_pages import Faults, ReportedRun, read_texts, removal_page

        shown_texts = read_texts(self._shown, texts, self._documents, self._rule.settings)
        run = ReportedRun(title, self._rule, self._result, keys, Faults(*faults))
        with replacing(path) as file:
            file.write(removal_page(run, self._shown, shown_texts).encode())
