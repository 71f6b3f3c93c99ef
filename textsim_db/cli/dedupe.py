"""textsim dedupe: the near-duplicates of a file or a table, in one command."""

from __future__ import annotations

import csv
import io
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from textsim_db.cli.common import DatabaseUrl, check_output, complain, connect, count
from textsim_db.cli.corpora import (
    Bands,
    CorpusThreshold,
    NumHashes,
    Recall,
    Rows,
    Seed,
    Shingle,
    StopWords,
    check,
    chosen_stop_words,
    given,
)
from textsim_db.cli.progress import loading
from textsim_db.cli.searches import LinkageOption
from textsim_db.errors import ConfigurationError, shown

if TYPE_CHECKING:
    from textsim_db.cluster.keep_rule import Preference
    from textsim_db.dedupe.files import Deduplication
    from textsim_db.files.record_files import Records

_SHOWN_FAULTS = 20


def _keep(text: str) -> Preference:
    from textsim_db.cluster.keep_rule import Preference

    try:
        return Preference.parse(text)
    except ConfigurationError as error:
        raise typer.BadParameter(shown(str(error))) from None


def dedupe(
    path: Annotated[
        str | None,
        typer.Argument(metavar="INPUT", help='A file of records; "-" is standard input.'),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="PATH", help='Where what stays goes; "-" is standard output.'
        ),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help="Write the clusters as well, to a file ending in .jsonl or .csv."
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="Instead of a file, a table of the database."),
    ] = None,
    into: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="With --table: the table to make of its clusters."),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            metavar="auto|jsonl|csv|parquet", help="What INPUT is; auto goes by its name."
        ),
    ] = "auto",
    text: Annotated[str, typer.Option(help="Member or column with the text.")] = "text",
    key: Annotated[
        str | None,
        typer.Option(
            help="Member or column with a key, for the report. Default: id, where there is one."
        ),
    ] = None,
    keep: Annotated[
        Any,
        typer.Option(
            parser=_keep,
            metavar="first|last|longest|shortest|max:COLUMN|min:COLUMN",
            help="Which document of several similar ones stays: by their order (in a table, that "
            "of the keys), the length of the text, or the value of a column, which must be all "
            "numbers or all texts; one without a value, or with NaN, only where all are.",
        ),
    ] = "first",
    linkage: LinkageOption = "kept",
    shingle: Shingle = None,
    threshold: CorpusThreshold = None,
    recall: Recall = None,
    num_hashes: NumHashes = None,
    seed: Seed = None,
    bands: Bands = None,
    rows: Rows = None,
    stop_words: StopWords = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Remove the near-duplicates of a file, or find those of a table.

    INPUT is JSON lines, CSV (each also gzip'ed) or Parquet (needs pyarrow). Records that stay are
    copied as they are; OUTPUT appears when it is whole. With the default linkage, every record that
    is removed has been verified at or above the threshold against the very one that stays in its
    place. With --table nothing is deleted: the clusters become a table (key, cluster, kept,
    similarity) to join with.

    Examples: `textsim dedupe articles.jsonl.gz -o unique.jsonl.gz --report clusters.jsonl`,
    `textsim dedupe --table article --key id --text body --into article_cluster --keep max:score`
    """
    settings = given(
        shingle=shingle,
        threshold=threshold,
        recall=recall,
        num_hashes=num_hashes,
        seed=seed,
        bands=bands,
        rows=rows,
        stop_words=chosen_stop_words(stop_words),
    )
    check(settings)
    _check_usage(path, table, output, report, into)
    if table is not None:
        assert into is not None
        _dedupe_table(table, into, key or "id", text, keep, settings, linkage, database_url)
        return
    assert path is not None
    from textsim_db.files.record_files import Columns, open_records

    columns = Columns(text, key or "id", keep.column, key is not None)
    with open_records(path, columns, kind) as records:
        _dedupe_file(records, output, report, keep, settings, linkage, database_url)


def _check_usage(
    path: str | None, table: str | None, output: str | None, report: str | None, into: str | None
) -> None:
    if (path is None) == (table is None):
        raise typer.BadParameter("give either a file or --table", param_hint="INPUT")
    if table is not None:
        if into is None or output is not None or report is not None:
            raise typer.BadParameter(
                "the clusters of a table go into a table: --into, not --output or --report",
                param_hint="--table",
            )
        return
    if into is not None:
        raise typer.BadParameter("it goes with --table", param_hint="--into")
    if output is None and report is None:
        raise typer.BadParameter("give --output, or --report, or both", param_hint="--output")
    if report is not None and not report.endswith((".jsonl", ".csv")):
        raise typer.BadParameter(f"{report} ends in neither .jsonl nor .csv", param_hint="--report")
    for written in filter(None, (output, report)):
        check_output(written)
    for what, other, stream in (("INPUT", path, 0), ("OUTPUT", output, 1)):
        if report is not None and other is not None and _is_same(report, other, stream):
            raise typer.BadParameter(
                f"{shown(report)} is {what} as well; name another file", param_hint="--report"
            )


def _is_same(report: str, other: str, stream: int) -> bool:
    """Say whether two names are of one file; "-" is what the stream of that number leads to."""
    with suppress(OSError):
        found = os.fstat(stream) if other == "-" else os.stat(other)
        return os.path.samestat(os.stat(report), found)
    return os.path.realpath(report) == os.path.realpath(other)


def _dedupe_file(
    records: Records,
    output: str | None,
    report: str | None,
    keep: Preference,
    settings: dict[str, Any],
    linkage: str,
    database_url: str | None,
) -> None:
    from textsim_db.dedupe.files import deduplicate

    keys: list[str | None] = []
    faults: list[str] = []

    def documents() -> Iterator[tuple[str | None, Any]]:
        for record in records:
            keys.append(None if report is None else record.key)
            if record.fault is not None:
                faults.append(record.fault)
            yield record.text, record.value

    start = time.monotonic()
    with connect(database_url) as db, loading(records, documents()) as (watched, stored):
        found = deduplicate(db, watched, keep, settings, linkage, stored)
    if output is not None:
        records.copy(found.mask(), output)
    if report is not None:
        _write_report(report, found, keys)
    faults += [f"record {number + 1}: {reason}" for number, reason in found.refused]
    complain(_summary(found, "removed", time.monotonic() - start))
    for fault in faults[:_SHOWN_FAULTS]:
        complain(f"cannot be compared, and stays: {fault}")
    if len(faults) > _SHOWN_FAULTS:
        complain(f"... and {len(faults) - _SHOWN_FAULTS:,} more")
    if faults:
        raise typer.Exit(1)


def _dedupe_table(
    name: str,
    into: str,
    key: str,
    text: str,
    keep: Preference,
    settings: dict[str, Any],
    linkage: str,
    database_url: str | None,
) -> None:
    from textsim_db.cluster.keep_rule import Preference
    from textsim_db.db.engine import database_errors
    from textsim_db.dedupe import tables
    from textsim_db.dedupe.files import deduplicate

    keys: list[str] = []
    # The server has put the values of a column in order.
    preference = Preference("min", "place") if keep.column is not None else keep
    start = time.monotonic()
    with connect(database_url) as db, database_errors():
        table = tables.find_table(db.engine, name, key, text, keep)
        tables.check_target(db.engine, table, into)
        documents = tables.documents(db.engine, table, keys)
        with loading(None, documents) as (watched, stored):
            found = deduplicate(db, watched, preference, settings, linkage, stored)
        tables.write_clusters(db.engine, table, into, keys, found)
    complain(_summary(found, "to remove", time.monotonic() - start))
    for number, reason in found.refused[:_SHOWN_FAULTS]:
        complain(f'cannot be compared: the row with key "{keys[number]}": {reason}')
    if found.refused:
        raise typer.Exit(1)


def _summary(found: Deduplication, gone: str, seconds: float) -> str:
    removed = len(found.removals)
    clusters = len({removal.kept for removal in found.removals})
    rate = f", {found.documents / seconds:,.0f} documents/s" if found.documents >= 1000 else ""
    return (
        f"{count(found.documents, 'document')}: {found.documents - removed:,} kept, "
        f"{removed:,} {gone} from {count(clusters, 'cluster')}; {seconds:.1f} s{rate}"
    )


def _write_report(path: str, found: Deduplication, keys: list[str | None]) -> None:
    from textsim_db.files.record_files import replacing

    with replacing(path) as raw:
        file = io.TextIOWrapper(raw, "utf-8", newline="")
        (_write_csv if path.endswith(".csv") else _write_jsonl)(file, found, keys)
        file.detach()  # which flushes, and leaves the closing to who opened it


def _write_jsonl(file: IO[str], found: Deduplication, keys: list[str | None]) -> None:
    def document(number: int) -> dict[str, Any]:
        named = {} if keys[number] is None else {"key": keys[number]}
        return {"record": number + 1, **named}

    for removals in found.clusters():
        gone = [{**document(r.number), "similarity": r.similarity} for r in removals]
        cluster = {"kept": document(removals[0].kept), "removed": gone}
        file.write(json.dumps(cluster, ensure_ascii=False) + "\n")


def _write_csv(file: IO[str], found: Deduplication, keys: list[str | None]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("cluster", "record", "key", "kept_record", "kept_key", "similarity"))
    for number, removals in enumerate(found.clusters(), start=1):
        kept = removals[0].kept
        writer.writerow((number, kept + 1, keys[kept], kept + 1, keys[kept], 1.0))
        for removal in removals:
            place = (number, removal.number + 1, keys[removal.number])
            writer.writerow((*place, kept + 1, keys[kept], removal.similarity))
