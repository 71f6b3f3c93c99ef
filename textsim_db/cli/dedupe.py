"""textsim dedupe: the near-duplicates of files, in one command; or a split of their records."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress

import typer

from textsim_db.cli import options
from textsim_db.cli.declare import with_settings
from textsim_db.cli.dedupe_reports import check_report
from textsim_db.cli.dedupe_run import Outputs, Standing, Texts, dedupe_file, show_uncompared
from textsim_db.cli.messages import print_message
from textsim_db.cli.opening import is_file_name
from textsim_db.cli.options import check_output
from textsim_db.cli.progress_lines import loading, speed
from textsim_db.errors import InputError
from textsim_db.files.file_kinds import RECORD_KINDS, FileFormat, Kind, kind_of, kind_of_output
from textsim_db.results.shown_values import count, shown
from textsim_db.settings.check_values import check_count
from textsim_db.settings.corpus_settings import (
    IN_MEMORY,
    PAIR_SETTINGS,
    CorpusConfig,
    CorpusSettings,
)
from textsim_db.settings.named_values import Linkage


@with_settings(*PAIR_SETTINGS, defaults=CorpusSettings(**IN_MEMORY))
def dedupe(
    inputs: list[str],
    /,
    *,
    settings: options.PartialSettings,
    output: str | None = None,
    report: str | None = None,
    against: list[str] | None = None,
    judgements: str | None = None,
    add: bool = False,
    form_of_files: FileFormat,
    glob: str = "*",
    output_kind: Kind = Kind.AUTO,
    text: str = "text",
    key: str | None = None,
    scope_columns: list[str] | None = None,
    drop_faulty: bool = False,
    keep: str = "first",
    linkage: Linkage = Linkage.KEPT,
    memory: float | None = None,
    keep_up_to: int = 1,
    annotate: bool = False,
    clusters_of_one: bool = False,
    split: str | None = None,
    random_seed: int = 0,
    stratify: str | None = None,
    database_url: str | None = None,
) -> None:
    """Remove the near-duplicates of files.

    Records of all files are compared with each other, and those that stay go to one output. INPUT is
    JSON lines, CSV, TSV or Parquet (needs PyArrow), each also as .gz, .bz2, .xz or .zst. Records that
    stay are copied unchanged. If the output has another format, or the files have different columns,
    they are converted, or the command fails at the first record that the format cannot hold. The output
    file appears when it is complete. With the default linkage, each record that is removed is similar to
    the record that stays: the exact similarity reaches the threshold. By default every pair of similar
    records is found (--recall). Records that cannot be compared are kept and listed.

    Records are compared in memory. Only --against CORPUS opens a database. It prints how many
    records were kept and removed, how similar they are, and how the least similar differ.

    Args:
        inputs: Files and folders of records; "-" is standard input.
        output (PATH): Write the records that stay to this file, in the format of its ending: .jsonl,
            .csv, .tsv or .parquet, each also with .gz. Standard output, "-", and a name without an
            ending keep the format of INPUT. Default: "-", or with --report no output.
        report: Write what was removed to this file. With the ending .jsonl it has a line of JSON
            for each cluster. With .html it is a page that stands alone, with the largest clusters and a
            sample of each tenth of similarity.
        against (CORPUS|FILE): Remove the records that match a document of this corpus, too. The corpus
            stays as it is without --add, and its settings say what matches. May be repeated: then the
            settings of the first corpus say which records match each other. Or remove the records that
            match one of a file of records with the same columns, whose name has an ending such as
            .jsonl: no database is opened.
        judgements (PATH): Obey the judgements of this file, which name records, and documents of
            --against, by their keys (--key). It is a file as textsim judgements import reads it, and
            textsim judgements list writes it. They come before those of the corpora of --against, which
            are obeyed, too.
        add: With --against: add the records that stay to the first corpus, under their keys (--key). A
            record whose key the corpus has already replaces that document. The file OUTPUT.added notes
            the result, so that a second run with the same records, such as after a kill, ends with the
            same output. A run with other records needs another output.
        kind (auto|jsonl|csv|tsv|parquet): Format of the files of records; auto decides by their names.
        output_kind (auto|jsonl|csv|tsv|parquet): Format of the output; auto decides by its name.
        key (COLUMN): Column, or member in JSON, with the key, for the report. Default: id if it exists.
        drop_faulty: Leave records out that cannot be compared, such as a malformed line. By default they
            stay, and a conversion fails at the first of them.
        keep (first|last|longest|shortest|max:COLUMN|min:COLUMN): Which document of a cluster stays: by
            order, by length, or by a column of numbers or of texts. A document without a value, or with
            NaN, stays only if no document of the cluster has a value.
        linkage: The definition of a cluster. single: chains of similar documents. complete: every two
            members are similar. kept: each member is similar to the member that is kept.
        memory (GB): Gigabytes of memory that the largest arrays may take; past them they lie in
            temporary files, in the folder that TMPDIR names. With 0 all of them do. The program takes
            250 MB besides, each record 450 bytes, and each distinct word 100. Default: half of the
            memory that is free.
        keep_up_to: Keep this many records of a cluster. The record of --keep comes first, then the least
            similar to it.
        annotate: Write all records, with five fields more. cluster: the number of the cluster, from 1
            on, null for a record alone. size: the records of the cluster, with those of earlier runs of
            --add, 1 for a record alone. kept: whether the record would stay. similarity: to the record
            of --keep in its cluster, or to the document of --against, otherwise null. kept_key: the key
            of that record, or its number without one, null for a record alone.
        clusters_of_one: With --annotate: a record alone has a cluster of its own, too.
        split (NAME=SHARE,...): Remove nothing, and split all records at random into a file for each
            name, in the folder of --output, such as train=0.8,test=0.2. A cluster of linkage single goes
            whole into one file, so no record of a file is similar to one of another file. Records that
            cannot be compared are left out.
        random_seed: With --split: another number makes another split.
        stratify (COLUMN): With --split: split the records of each value of this column in these shares,
            as far as clusters allow.

    Examples:
    - `textsim dedupe articles.jsonl > unique.jsonl`
    - `textsim dedupe articles.jsonl.gz -o unique.jsonl.gz --report clusters.jsonl`
    - `textsim dedupe articles.jsonl -o unique.jsonl --report removed.html`
    - `textsim dedupe articles.csv --text body --threshold 0.9 --keep longest > unique.csv`
    - `textsim dedupe articles.tsv.gz -o unique.parquet`
    - `textsim dedupe part-1.jsonl part-2.jsonl.gz -o unique.jsonl`
    - `textsim dedupe folder --glob "*.parquet" --text message.content -o unique.parquet`
    - `textsim dedupe tickets.jsonl --scope customer -o unique.jsonl`
    - `textsim dedupe this-week.jsonl --against news -o new.jsonl --report known.jsonl`
    - `textsim dedupe this-week.jsonl --against news --add -o new.jsonl`
    - `textsim dedupe test.jsonl --against train.jsonl -o clean.jsonl`
    - `textsim dedupe articles.jsonl --annotate --keep-up-to 3 -o annotated.jsonl`
    - `textsim dedupe articles.jsonl --judgements judgements.csv -o unique.jsonl`
    - `textsim dedupe articles.jsonl --split train=0.8,test=0.2 --stratify label -o splits`

    """
    from textsim_db.cluster.keep_rule import Preference
    from textsim_db.dedupe.removals import ANNOTATION, Rule
    from textsim_db.files.judgement_files import read_judgements
    from textsim_db.files.record_files import RecordColumns
    from textsim_db.files.several_files import RecordFiles, record_files

    config = options.complete({**IN_MEMORY, **settings, "scoped": bool(scope_columns)})
    check_count(keep_up_to, "keep_up_to", 1, 2**31)
    preference, scope = Preference.parse(keep), scope_columns or ()
    rule = Rule(preference, config, linkage, keep_up_to)
    key_needed = add or key is not None or judgements is not None
    wanted = RecordColumns(text, key or "id", preference.column, key_needed, scope)
    paths = record_files(inputs, glob, form_of_files.kind)
    most = None if memory is None else int(memory * 1e9)
    if split is not None:
        _check_split(
            output,
            {
                "--report": report,
                "--against": against,
                "--judgements": judgements,
                "--add": add,
                "--annotate": annotate,
                "--keep": keep != "first",
                "--keep-up-to": keep_up_to > 1,
                "--linkage": linkage not in (Linkage.KEPT, Linkage.SINGLE),
            },
        )
        wanted = wanted._replace(value=stratify, value_option="--stratify")
        with RecordFiles(paths, wanted, form_of_files) as records:
            texts = Texts(records, key is not None, drop_faulty=True)
            _split_files(
                texts,
                config,
                _read_shares(split, random_seed),
                random_seed,
                str(output),
                output_kind,
                most,
            )
        return
    if output is None and report is None:
        output = "-"
    outputs = Outputs(output, report)
    files = [
        each for each in against or () if is_file_name(each) and kind_of(each) is not Kind.TEXT
    ]
    corpora = [each for each in against or () if each not in files]
    _check_usage(paths, files, outputs, judgements, output_kind)
    if files and (corpora or add or judgements):
        raise options.misused("--against", "with a file, leave out corpora, --add and --judgements")
    if corpora and settings:
        flags = ", ".join(map(options.flag_of, settings))
        raise options.misused("--against", f"a corpus has settings of its own; leave out {flags}")
    if add and not against:
        raise options.misused("--add", "it needs --against CORPUS")
    if add and outputs.lasting() is None:
        raise options.misused(
            "--add", "it needs a file for --output or --report, so that it can go on after a kill"
        )
    if annotate and output is None:
        raise options.misused("--annotate", "it needs --output")
    if random_seed or stratify:
        raise options.misused("--random-seed" if random_seed else "--stratify", "it needs --split")
    if clusters_of_one and not annotate:
        raise options.misused("--clusters-of-one", "it needs --annotate")
    if annotate:
        wanted = wanted._replace(appended=ANNOTATION)
    judged = None if judgements is None else read_judgements(judgements)
    with ExitStack() as stack:
        records = stack.enter_context(RecordFiles(paths, wanted, form_of_files))
        columns = RecordColumns(text, wanted.key, scope=wanted.scope)
        by_name = form_of_files._replace(kind=Kind.AUTO)
        standing = Standing(
            [stack.enter_context(RecordFiles([each], columns, by_name)) for each in files]
        )
        if output is not None:
            records.convert_for(output, output_kind, drop_faulty)
        named = frozenset(key for judgement in judged or () for key in judgement[:2])
        with_keys = key_needed or report is not None or bool(against) or annotate
        texts = Texts(records, with_keys, drop_faulty, named, clusters_of_one)
        dedupe_file(texts, rule, outputs, corpora, judged, add, most, database_url, standing)


def _check_split(output: str | None, unused: Mapping[str, object]) -> None:
    if output is None or output == "-":
        raise options.misused("--split", "it needs --output with the name of a folder")
    if others := [option for option, value in unused.items() if value]:
        raise options.misused("--split", f"it removes nothing; leave out {', '.join(others)}")


def _check_usage(
    paths: list[str],
    against: list[str],
    outputs: Outputs,
    judgements: str | None,
    output_kind: Kind,
) -> None:
    from textsim_db.files.record_files import check_packages

    output, report = outputs
    read = [("INPUT", name) for name in paths]
    read += [("--against", name) for name in against]
    read += [] if judgements is None else [("--judgements", judgements)]
    if output is not None:
        way_out = "name another file, which may replace this file afterwards"
        check_output("--output", output, read, way_out)
        check_packages(output, kind_of_output(output, output_kind, Kind.TEXT))
    if report is not None:
        check_report(report)
        written = [] if output is None else [("OUTPUT", 1 if output == "-" else output)]
        check_output("--report", report, [*read, *written])


def _read_shares(text: str, random_seed: int) -> dict[str, float]:
    """Read shares such as "train=0.8,test=0.2"; the names become names of files."""
    from textsim_db.cluster.draw_subsets import check_shares

    shares: dict[str, float] = {}
    for item in text.split(","):
        name, _, share = item.strip().partition("=")
        if name in shares or os.path.basename(name) != name or name.startswith("."):
            raise options.misused(
                "--split", f'"{shown(name)}" names no other file; expected NAME=SHARE,...'
            )
        try:
            shares[name] = float(share)
        except ValueError:
            raise options.misused(
                "--split", f'"{shown(item)}" is no NAME=SHARE such as test=0.2'
            ) from None
    return check_shares(shares, random_seed)


def _split_files(
    texts: Texts,
    config: CorpusConfig,
    shares: Mapping[str, float],
    random_seed: int,
    folder: str,
    output_kind: Kind,
    memory: int | None,
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
    with loading(records) as load:
        drawn = split_documents(texts, config, shares, random_seed, memory, load.after_batch)
    faults = texts.all_faults(drawn.refused)
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
    show_uncompared(faults.values(), "left out")
    if faults:
        raise typer.Exit(1)
