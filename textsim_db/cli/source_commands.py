"""textsim attach, detach and reconcile: the tables that are kept indexed."""

from __future__ import annotations

import logging
import shlex
from typing import TYPE_CHECKING, Any

import typer

from textsim_db.cli.messages import print_message, print_result
from textsim_db.cli.operations import Call, Operation
from textsim_db.cli.progress_lines import exit_if_set_aside, print_changes
from textsim_db.results.shown_values import count, shown
from textsim_db.settings.named_values import Mode

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus


def _show_attached(call: Call) -> None:
    arguments, config = call.arguments, call.corpus.config
    print_changes(call.corpus.name, call.result, call.seconds, table=arguments["table"])
    print_message(
        "changed rows are found at once; textsim worker gives their words ids later"
        if arguments["mode"] is Mode.INLINE or config.is_unique
        else "to index later changes, keep this command running: textsim worker"
    )
    exit_if_set_aside(call.result)


ATTACH = Operation(
    "attach",
    """Keep a table indexed: index its rows now, and its changes from now on.

    It prints how many documents were added. In mode queue, `textsim worker` must run: it indexes the
    changes.

    Args:
        key_columns (COLUMN): Column with the key: unique and NOT NULL, of type integer, uuid, text,
            varchar, date, timestamp or timestamptz. Repeat it if the key has several columns.
        text (COLUMN): Column with the text.

    Examples:
    - `textsim attach news article --key id --text body --create`
    - `textsim attach news 'blog."Articles"' --text body --mode inline`
    - `textsim attach news message --key day --key id --text body`

    """,
    show=_show_attached,
    progress=("indexing", "rows"),
    defaults={"key_columns": ["id"], "text": "text"},
    leaves_out=("key",),
    creates=True,
)


DETACH = Operation(
    "detach",
    """Stop keeping a table indexed; its documents stay in the corpus.

    If the table was dropped, give its oid, which the worker's messages name.

    Example: `textsim detach news article`
    """,
    done='table {table} is no longer attached to the corpus "{corpus}"',
    computes=False,
)


def _preview_merge(corpus: Corpus, arguments: dict[str, Any]) -> None:
    from textsim_db.sync.sources import texts_to_merge

    names = ("table", "statement", "keep", "threshold", "scope")
    texts = corpus._current.loaded().call_once(texts_to_merge, *map(arguments.get, names))
    total = texts[0][0] if texts else 0
    end = "; of these texts most:" if texts else ""
    print_message(f"{count(total, 'row')} would be merged{end}")
    for _, copies, body in texts:
        print_message(f"{copies:9,}  {shown(body)}")


def _show_merged(call: Call) -> None:
    run, merged, left_alone = call.result
    for key, reason in sorted(left_alone.items()):
        print_message(f'left alone: row "{shown(key)}": {shown(reason)}', logging.WARNING)
    name = call.corpus.name
    message = f"{count(merged, 'row')} merged"
    if merged:
        message += f"; to bring them back: textsim unmerge {shlex.quote(name)} --run {run}"
    print_result(message, corpus=name, run=run, merged=merged, left_alone=left_alone)


MERGE = Operation(
    "merge",
    """Take the duplicates out of an attached table, so that one row of each cluster stays.

    Each row is locked and compared again, and then deleted, or marked by --statement. A log keeps the
    whole row, so that `textsim unmerge` brings it back. A judgement or a guard keeps rows apart. Before
    it asks, it prints how many rows it would take, and of which texts most. After an interruption run
    it again.

    Examples:
    - `textsim merge stories`
    - `textsim merge stories --statement 'UPDATE story SET duplicate_of = $2::int WHERE id = $1::int'`

    """,
    show=_show_merged,
    arguments=("table",),
    asks="merge the duplicates of the table of corpus {corpus}",
    preview=_preview_merge,
    computes=False,
)


def _show_unmerged(call: Call) -> None:
    if call.write_rows() > sum(each.outcome.startswith("restored") for each in call.result):
        raise typer.Exit(1)


UNMERGE = Operation(
    "unmerge",
    """Bring back rows that `textsim merge` took out: one, those of a cluster or a run, or since a time.

    They are judged different, so that they stay apart, but not if too many pairs would be judged. Exit
    status 1 if a row did not come back, for example because its key has another row now.

    Examples:
    - `textsim unmerge stories --run 17`
    - `textsim unmerge stories --kept 2`
    - `textsim unmerge stories --since '2026-11-30 12:00'`

    """,
    columns=("key", "kept_key", "outcome"),
    show=_show_unmerged,
    computes=False,
)


def _show_reconciled(call: Call) -> None:
    print_changes(call.corpus.name, call.result, call.seconds)
    exit_if_set_aside(call.result)


def _show_drift(call: Call) -> None:
    if call.write_rows():
        raise typer.Exit(1)
    print_message("nothing differs")


DRIFT = Operation("drift", "", columns=("key", "kind"), show=_show_drift)
_CHECK = "List the differences and change nothing; exit status 1 if there are any."
RECONCILE = Operation(
    "reconcile",
    """Compare a corpus with its attached tables, row by row, and index what differs.

    Some changes bypass triggers: replicated rows, disabled triggers, attached partitions. If the corpus
    is tracked, it also computes anew what is wrong in its matches and clusters. With
    --check it prints the keys that differ, including changes that wait for a worker.

    Examples:
    - `textsim reconcile news`
    - `textsim reconcile news --check --format jsonl`

    """,
    show=_show_reconciled,
    progress=("comparing", "rows"),
    variants={"check": (_CHECK, DRIFT)},
)
