"""Decides from its report whether a worker makes progress; pure."""

from __future__ import annotations

from textsim_db.sync.progress import Report

READY_SECONDS = 60.0
"""A step takes less, except with the largest texts."""
ALIVE_SECONDS = 600.0
"""A worker whose step takes longer is stuck: the largest texts take minutes."""


def why_stuck(report: Report, poll: float) -> str | None:
    """Return why a worker should be started again; None if it makes progress.

    A worker without a server is not stuck: it tries again every half minute.
    """
    return _without_progress(report, ALIVE_SECONDS + poll)


def why_not_ready(report: Report, poll: float) -> str | None:
    """Return why a worker indexes no changes at present; None if it does."""
    if report.claimed is None:
        return "it has not looked for changes yet"
    if report.failed is not None and report.failed < report.claimed:
        return f"it tries again: {report.error}"
    return _without_progress(report, READY_SECONDS + poll)


def _without_progress(report: Report, limit: float) -> str | None:
    if report.step_began <= limit:
        return None
    return f"it {report.step} for {report.step_began:,.0f} s"
