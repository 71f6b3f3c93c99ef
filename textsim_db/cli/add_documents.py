"""Adds the documents of a command to a corpus, and prints what became of them."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from textsim_db.cli.messages import Refusals, print_message, print_result
from textsim_db.cli.progress import Measured, loading
from textsim_db.errors import DatabaseError, shown
from textsim_db.results import AddReport
from textsim_db.show.numbers import count

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus

_DOCUMENTS_FOR_SPEED = 1000
"""From this many documents on, the message shows the speed."""
_SHOWN_TWINS = 20


def add_documents(
    corpus: Corpus, measured: Measured, documents: Iterable[tuple[Any, ...]]
) -> AddReport:
    """Add documents as Corpus.add_many() does, and show the progress."""
    with loading(measured, documents) as load:
        try:
            return corpus.add_many(load, load.after_batch)
        except (DatabaseError, KeyboardInterrupt, SystemError) as error:
            error.add_note(
                f"{count(load.report.stored, 'document')} were stored and stay; repeat the command "
                "to add the other documents"
            )
            raise


def print_report(corpus: str, report: AddReport, refusals: Refusals, seconds: float) -> None:
    """Print what became of the documents, and the first that were refused or left out."""
    print_result(
        _summary(report, refusals.count, seconds),
        corpus=corpus,
        documents=report.received,
        added=report.added,
        replaced=report.replaced,
        unchanged=report.unchanged,
        refused=refusals.count,
        twins=len(report.twins),
        seconds=round(seconds, 3),
        rate=round(report.received / max(seconds, 1e-9), 1),
    )
    if report.some_repeated:
        names = ", ".join(f'"{key}"' for key in report.some_repeated)
        print_message(shown(f"keys that came again, such as {names}"), logging.WARNING)
    refusals.show()
    _show_twins(report)


def _show_twins(report: AddReport) -> None:
    for key, standing, similarity in report.twins[:_SHOWN_TWINS]:
        message = (
            f'left out: document "{key}" matches "{standing}" with similarity {similarity:.3f}'
        )
        fields = {"key": key, "standing": standing, "similarity": similarity}
        print_message(shown(message), logging.WARNING, **fields)
    if len(report.twins) > _SHOWN_TWINS:
        print_message(f"... and {len(report.twins) - _SHOWN_TWINS:,} more", logging.WARNING)


def _summary(report: AddReport, refused: int, seconds: float) -> str:
    parts = [
        f"{report.added:,} added",
        f"{report.replaced:,} replaced",
        f"{report.unchanged:,} unchanged",
    ]
    if report.repeated_keys:
        parts.append(f"{report.repeated_keys:,} with a repeated key (the last document stays)")
    if report.twins:
        parts.append(f"{len(report.twins):,} left out")
    if refused:
        parts.append(f"{refused:,} refused")
    return f"{', '.join(parts)}; {seconds:.1f} s{speed(report.received, seconds)}"


def speed(documents: int, seconds: float) -> str:
    """Return the speed as the end of a message; empty for few documents."""
    return f", {documents / seconds:,.0f} documents/s" if documents >= _DOCUMENTS_FOR_SPEED else ""
