"""python -m textsim_db.spark dedupe: many rows without their near-duplicates, in one command."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pyspark.errors import PySparkException

from textsim_db.cli.app import CommandGroup
from textsim_db.cli.logs import Command
from textsim_db.cli.messages import print_message
from textsim_db.cli.options import LinkageOption
from textsim_db.cli.settings_options import PartialSettings, check_settings, with_settings
from textsim_db.errors import InputError
from textsim_db.settings import PAIR_SETTINGS
from textsim_db.show.numbers import count
from textsim_db.spark.candidates import Candidates, find_candidates
from textsim_db.spark.dedupe_frame import Place, count_removed, rank_of, write_report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHOWN_REFUSALS = 20

warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)

app = typer.Typer(
    cls=CommandGroup,
    name="textsim_db.spark",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def root() -> None:
    """Find near-duplicate texts with Spark, for inputs that are too large for one machine."""


@app.command(cls=Command)
@with_settings(*PAIR_SETTINGS, panel="Which texts are near-duplicates")
def dedupe(
    settings: PartialSettings,
    path: Annotated[
        str, typer.Argument(metavar="INPUT", help="A file, folder, address or table of Spark's.")
    ],
    output: Annotated[
        str,
        typer.Argument(
            metavar="OUTPUT", help="A folder or table for the rows that stay. It must not exist."
        ),
    ],
    key: Annotated[
        str, typer.Option(metavar="COLUMN", help="Column with the keys, which are unique.")
    ] = "id",
    text: Annotated[str, typer.Option(metavar="COLUMN", help="Column with the texts.")] = "text",
    scope: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column with the scopes, such as tenants. Documents of different scopes are not "
            "compared.",
        ),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="longest|shortest|max:COLUMN|min:COLUMN",
            help="Which document of a cluster stays. Default, and if several tie: the lowest key.",
        ),
    ] = None,
    linkage: LinkageOption = "kept",
    report: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help="Write the clusters, counts and refused rows to this new folder."
        ),
    ] = None,
    format_name: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="auto|parquet|json|csv|tsv|table|...",
            help="Format of INPUT and OUTPUT, any that Spark has, such as delta; auto decides by name.",
        ),
    ] = "auto",
    partitions: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", help="Partitions of the buckets. Default: two for each core."
        ),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Spark's master. Default: spark-submit's, or local[*]."),
    ] = None,
) -> None:
    """Write the rows of INPUT without its near-duplicates; the result is that of `textsim dedupe`.

    INPUT is read three times, and must not change meanwhile. Rows that cannot be compared stay and are
    listed.

    Example: `python -m textsim_db.spark dedupe articles.parquet unique.parquet --keep longest`
    """
    start = time.monotonic()
    check_settings(settings)
    places = [Place.parse(path, format_name), Place.parse(output, format_name)]
    with _session(master) as spark, _spark_errors():
        places[1].check_absent(spark)
        if report is not None:
            Place(report, "json").check_absent(spark)
        rows = places[0].read(spark)
        rank = rank_of(rows, text, keep)
        print_message("1 of 3: computing the buckets of all documents")
        candidates = find_candidates(rows, key, text, scope, partitions, **settings)
        print_message(f"2 of 3: comparing {count(candidates.candidates, 'candidate')}")
        duplicates = candidates.duplicates(linkage, *rank).persist()
        counts = count_removed(candidates, duplicates)
        print_message("3 of 3: writing the rows that stay")
        places[1].write(candidates.without(duplicates))
        if report is not None:
            write_report(report, candidates, duplicates, counts)
    seconds = time.monotonic() - start
    print_message(
        f"{count(counts.documents + counts.refused, 'row')}: {counts.removed:,} removed from "
        f"{count(counts.clusters, 'cluster')}; {seconds:.1f} s",
        **counts._asdict(),
    )
    _print_refusals(candidates)


def _print_refusals(candidates: Candidates) -> None:
    for key, reason in candidates.refusals[:_SHOWN_REFUSALS]:
        message = f"kept, because it cannot be compared: the row with key {key}: {reason}"
        print_message(message, logging.WARNING)
    if candidates.refused > _SHOWN_REFUSALS:
        print_message(f"... and {candidates.refused - _SHOWN_REFUSALS:,} more", logging.WARNING)
    if candidates.refused:
        raise typer.Exit(1)


@contextlib.contextmanager
def _session(master: str | None) -> Iterator[SparkSession]:
    """Lend the session of this process, or a new one: with spark-submit's master, or this machine."""
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    builder = SparkSession.builder.appName("textsim dedupe")
    if master is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        master = "local[*]"
    if master is not None:
        builder = builder.master(master)
    if master is not None and master.startswith("local"):
        # The tasks run on this machine: with this Python, and reached by no other machine.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.config("spark.driver.host", "127.0.0.1")
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


@contextlib.contextmanager
def _spark_errors() -> Iterator[None]:
    """Raise the errors of Spark as errors that the command explains."""
    try:
        yield
    except PySparkException as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        raised = [line for line in lines if line.startswith("textsim_db.errors.")]
        message: Any = raised[-1].partition(": ")[2] if raised else lines[0] if lines else error
        raise InputError(f"Spark: {message}") from None
