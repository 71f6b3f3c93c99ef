"""The run of textsim dedupe --split: all records, in a file for each subset."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress

import typer

from textsim_db.cli.dedupe_run import Texts, show_uncompared
from textsim_db.cli.document_commands import speed
from textsim_db.cli.messages import print_message
from textsim_db.cli.output import check_output
from textsim_db.cli.progress_lines import loading
from textsim_db.errors import ConfigurationError, InputError, shown
from textsim_db.files.file_kinds import RECORD_KINDS, Kind
from textsim_db.results import Refusal
from textsim_db.results.numbers_as_text import count
from textsim_db.settings.corpus_settings import CorpusConfig


def read_shares(text: str) -> dict[str, float]:
    """Read shares such as "train=0.8,test=0.2"; the names become names of files."""
    from textsim_db.cluster.draw_subsets import check_shares

    shares: dict[str, float] = {}
    for item in text.split(","):
        name, _, share = item.strip().partition("=")
        if name in shares or os.path.basename(name) != name or name.startswith("."):
            raise typer.BadParameter(
                f'"{shown(name)}" names no other file; expected NAME=SHARE,...'
            )
        try:
            shares[name] = float(share)
        except ValueError:
            raise typer.BadParameter(f'"{shown(item)}" is no NAME=SHARE such as test=0.2') from None
    try:
        return check_shares(shares)
    except ConfigurationError as error:
        raise typer.BadParameter(shown(str(error))) from None


def split_files(
    texts: Texts,
    config: CorpusConfig,
    shares: Mapping[str, float],
    random_seed: int,
    folder: str,
    output_kind: Kind,
    memory: float | None,
) -> None:
    """Split the records, and write a file for each subset into the folder.

    A record that cannot be compared may be similar to any other one, so it is left out.
    """
    from textsim_db.dedupe.compare_texts import split_documents

    start = time.monotonic()
    records = texts.records
    kind = records.files[0].kind if output_kind is Kind.AUTO else output_kind
    os.makedirs(folder, exist_ok=True)
    paths = [os.path.join(folder, f"{name}.{RECORD_KINDS[kind].endings[0]}") for name in shares]
    for path in paths:
        check_output("--output", path, [("INPUT", file.name) for file in records.files])
    records.convert_for(paths[0], output_kind, drop_faulty=True)
    most = None if memory is None else int(memory * 1e9)
    with loading(records, texts) as load:
        drawn = split_documents(load, config, shares, random_seed, most, load.after_batch)
    faults = texts.faults | {
        number: Refusal(records.place(number), reason) for number, reason in drawn.refused
    }
    if not len(drawn.numbers):
        reason = ": ".join(faults[min(faults)]) if faults else "there are none"
        raise InputError(f"no record can be compared, so nothing was written: {reason}")
    for path in paths:  # so that a run that is interrupted never leaves subsets of two splits
        with suppress(FileNotFoundError):
            os.unlink(path)
    for mask, path in zip(drawn.masks(len(texts.keys)), paths, strict=True):
        records.write(mask, path)
    sizes = ", ".join(
        f"{len(keys):,} in {name} ({len(keys) / len(drawn.numbers):.1%})"
        for name, keys in drawn.split.subsets.items()
    )
    seconds = time.monotonic() - start
    print_message(
        f"{count(len(drawn.numbers), 'record')}: {sizes}; {seconds:.1f} s"
        f"{speed(len(drawn.numbers), seconds)}"
    )
    print_message(
        f"no similar pair is cut; a split of single records would cut {drawn.split.cut:,}"
    )
    show_uncompared(faults, "left out")
    if faults:
        raise typer.Exit(1)
