"""textsim dedupe: the near-duplicates of files, in one command."""

from __future__ import annotations

import logging
import resource
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from textsim_db.cli import options
from textsim_db.cli.dedupe_reports import (
    AdditionFile,
    HtmlCount,
    check_report,
    is_page,
    keep_apart_tips,
    similar_scopes_note,
    summary_lines,
    write_clusters,
)
from textsim_db.cli.document_commands import add_documents, print_report, speed, without_words_note
from textsim_db.cli.messages import Refusals, print_message
from textsim_db.cli.opening import connect, is_file_name
from textsim_db.cli.output import check_output
from textsim_db.cli.progress_lines import loading
from textsim_db.errors import ConfigurationError, CorpusNotFound, InputError, shown
from textsim_db.files.file_kinds import FileFormat, Kind, Quote, kind_of_output
from textsim_db.results import Refusal
from textsim_db.results.numbers_as_text import count
from textsim_db.settings.corpus_settings import IN_MEMORY, PAIR_SETTINGS, CorpusSettings

if TYPE_CHECKING:
    from textsim_db.cluster.keep_rule import Preference
    from textsim_db.corpus import Corpus
    from textsim_db.dedupe.removal_summary import AnyDocument
    from textsim_db.dedupe.removals import Deduplication, Document, Rule
    from textsim_db.files.judgement_files import ReadJudgement
    from textsim_db.files.several_files import RecordFiles
    from textsim_db.review.report_pages import RemovalPage


def _keep(text: str) -> Preference:
    from textsim_db.cluster.keep_rule import Preference

    try:
        return Preference.parse(text)
    except ConfigurationError as error:
        raise typer.BadParameter(shown(str(error))) from None


@options.with_settings(*PAIR_SETTINGS, defaults=CorpusSettings(**IN_MEMORY))
def dedupe(
    settings: options.PartialSettings,
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT", help='Files and folders of records; "-" is standard input.'
        ),
    ],
    output: Annotated[
        str | None,
        options.path_option(
            "Write the records that stay to this file, in the format of its ending: .jsonl, .csv, "
            '.tsv or .parquet, each also with .gz. Standard output, "-", and a name without an ending '
            'keep the format of INPUT. Default: "-", or with --report no output.',
            "--output",
            "-o",
        ),
    ] = None,
    report: Annotated[
        str | None,
        options.path_option(
            "Write what was removed to this file. With the ending .jsonl it has a line of JSON for "
            "each cluster. With .html it is a page that stands alone, with the largest clusters and a "
            "sample of each tenth of similarity."
        ),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CORPUS",
            help="Remove the records that match a document of this corpus, too. The corpus stays as it "
            "is without --add, and its settings say what matches. May be repeated: then the settings of "
            "the first corpus say which records match each other.",
        ),
    ] = None,
    judgements: Annotated[
        str | None,
        options.path_option(
            "Obey the judgements of this file, which name records, and documents of --against, by their "
            "keys (--key). It is a file as textsim judgements import reads it, and textsim judgements "
            "list writes it. They come before those of the corpora of --against, which are obeyed, too."
        ),
    ] = None,
    add: Annotated[
        bool,
        typer.Option(
            "--add",
            help="With --against: add the records that stay to the first corpus, under their keys "
            "(--key). A record whose key the corpus has already replaces that document. The file "
            "OUTPUT.added notes the result, so that a second run with the same records, such as after "
            "a kill, ends with the same output. A run with other records needs another output.",
        ),
    ] = False,
    kind: options.RecordKindOption = Kind.AUTO,
    separator: options.SeparatorOption = None,
    quote: options.QuoteOption = Quote.AUTO,
    encoding: options.EncodingOption = None,
    glob: options.GlobOption = "*",
    output_kind: Annotated[
        Kind, options.record_kind_option("Format of the output; auto decides by its name.")
    ] = Kind.AUTO,
    text: options.TextColumn = "text",
    key: Annotated[
        str | None,
        options.column_option(
            "Column, or member in JSON, with the key, for the report. Default: id if it exists."
        ),
    ] = None,
    scope: options.ScopeColumns = None,
    drop_faulty: Annotated[
        bool,
        typer.Option(
            "--drop-faulty",
            help="Leave records out that cannot be compared, such as a malformed line. By default they "
            "stay, and a conversion fails at the first of them.",
        ),
    ] = False,
    keep: Annotated[
        Any,
        typer.Option(
            parser=_keep,
            metavar="first|last|longest|shortest|max:COLUMN|min:COLUMN",
            help="Which document of a cluster stays: by order, by length, or by a column of numbers or "
            "of texts. A document without a value, or with NaN, stays only if no document of the "
            "cluster has a value.",
        ),
    ] = "first",
    linkage: options.LinkageOption = "kept",
    memory: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="GB",
            help="Gigabytes of memory that the largest arrays may take; past them they lie in temporary "
            "files, in the folder that TMPDIR names. With 0 all of them do. The program takes 250 MB "
            "besides, each record 450 bytes, and each distinct word 100. Default: half of the memory "
            "that is free.",
        ),
    ] = None,
    keep_up_to: Annotated[
        int,
        options.positive_number_option(
            "Keep this many records of a cluster. The record of --keep comes first, then the least "
            "similar to it."
        ),
    ] = 1,
    annotate: Annotated[
        bool,
        typer.Option(
            "--annotate",
            help="Write all records, with four fields more. cluster: the number of the cluster, from 1 "
            "on, null for a record alone. size: the records of the cluster, with those of earlier runs "
            "of --add, 1 for a record alone. kept: whether the record would stay. similarity: to the "
            "record of --keep in its cluster, or to the document of --against, otherwise null.",
        ),
    ] = False,
    database_url: options.DatabaseUrl = None,
) -> None:
    """Remove the near-duplicates of files.

    Records of all files are compared with each other, and those that stay go to one output. INPUT is
    JSON lines, CSV, TSV or Parquet (needs PyArrow), each also as .gz, .bz2, .xz or .zst. Records that
    stay are copied unchanged. If the output has another format, or the files have different columns,
    they are converted, or the command fails at the first record that the format cannot hold. The output
    file appears when it is complete. With the default linkage, each record that is removed is similar to
    the record that stays: the exact similarity reaches the threshold. By default every pair of similar
    records is found (--recall). Records that cannot be compared are kept and listed.

    Records are compared in memory. Without --against no database is opened. It prints how many records
    were kept and removed, how similar they are, and how the least similar differ.

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
    - `textsim dedupe articles.jsonl --annotate --keep-up-to 3 -o annotated.jsonl`
    - `textsim dedupe articles.jsonl --judgements judgements.csv -o unique.jsonl`

    """
    from textsim_db.dedupe.removals import ANNOTATION, Rule
    from textsim_db.files.judgement_files import read_judgements
    from textsim_db.files.read_documents import record_files
    from textsim_db.files.record_files import RecordColumns
    from textsim_db.files.several_files import RecordFiles

    chosen = {**IN_MEMORY, **settings}
    options.complete(chosen)
    if output is None and report is None:
        output = "-"
    outputs = _Outputs(output, report)
    paths = record_files(paths, glob, kind)
    _check_usage(paths, outputs, judgements, output_kind)
    if against and settings:
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
    rule = Rule(keep, CorpusSettings(**chosen, scoped=bool(scope)), linkage, keep_up_to)
    key_needed = add or key is not None or judgements is not None
    wanted = RecordColumns(text, key or "id", keep.column, key_needed, scope or ())
    if annotate:
        wanted = wanted._replace(appended=ANNOTATION)
    judged = None if judgements is None else read_judgements(judgements)
    with RecordFiles(paths, wanted, FileFormat(kind, separator, quote, encoding)) as records:
        if output is not None:
            records.convert_for(output, output_kind, drop_faulty)
        named = frozenset(key for judgement in judged or () for key in judgement[:2])
        with_keys = key_needed or report is not None or bool(against)
        texts = _Texts(records, with_keys, drop_faulty, named)
        _dedupe_file(texts, rule, outputs, against or [], judged, add, memory, database_url)


@contextmanager
def _opened(names: list[str], database_url: str | None) -> Iterator[list[Corpus]]:
    """Open the corpora of --against; without one no database is opened."""
    if not names:
        yield []
        return
    with connect(database_url) as db:
        try:
            yield [db.corpus(name) for name in names]
        except CorpusNotFound as error:
            files = [*filter(is_file_name, names)]
            for name in files:
                error.add_note(
                    f"to compare with a file, make a corpus of it: textsim index NAME {name} --create"
                )
            if not files:
                error.add_note("to begin with an empty corpus: textsim corpus create NAME")
            raise


def _check_usage(
    paths: list[str], outputs: _Outputs, judgements: str | None, output_kind: Kind
) -> None:
    from textsim_db.files.record_files import check_packages

    output, report = outputs
    read = [("INPUT", name) for name in paths]
    read += [] if judgements is None else [("--judgements", judgements)]
    if output is not None:
        way_out = "name another file, which may replace this file afterwards"
        check_output("--output", output, read, way_out)
        check_packages(output, kind_of_output(output, output_kind, Kind.TEXT))
    if report is not None:
        check_report(report)
        written = [] if output is None else [("OUTPUT", 1 if output == "-" else output)]
        check_output("--report", report, [*read, *written])


class _Outputs(NamedTuple):
    output: str | None
    """The records that stay."""
    report: str | None
    """The clusters."""

    def lasting(self) -> str | None:
        """Return the first that is neither standard output nor a pipe."""
        from textsim_db.files.records import is_special

        return next((name for name in self if name and name != "-" and not is_special(name)), None)


@dataclass
class _Texts:
    """The texts of records with their values for --keep; collects the keys and the faults."""

    records: RecordFiles
    with_keys: bool
    drop_faulty: bool
    """Whether records with a fault do not stay."""
    judged: Collection[str] = ()
    """The keys that the judgements of a file name."""
    keys: list[str | None] = field(default_factory=list)
    faults: dict[int, Refusal] = field(default_factory=dict)
    """Why records cannot be compared, by their places."""
    html: HtmlCount = field(default_factory=HtmlCount)

    def __iter__(self) -> Iterator[Document]:
        from textsim_db.dedupe.removals import Document

        self.keys.clear()
        self.faults.clear()
        self.html = HtmlCount()
        places: dict[str, int] = {}
        for number, record in enumerate(self.records):
            key = record.key if self.with_keys else None
            self.keys.append(key)
            if key is not None and key in self.judged and places.setdefault(key, number) != number:
                raise InputError(
                    f'a judgement names "{shown(key)}", but two records have this key: '
                    f"{self.records.place(places[key])}, and {self.records.place(number)}"
                )
            if record.fault is not None:
                self.faults[number] = record.fault
            if record.text is not None:
                self.html.add(number, record.text)
            yield Document(record.text, record.value, record.scope, key)

    def of_numbers(self, numbers: Collection[int]) -> dict[int, str]:
        """Read the records again, and return the texts of some by their places."""
        texts = enumerate(record.text for record in self.records)
        return {number: text for number, text in texts if number in numbers and text is not None}


def _dedupe_file(
    texts: _Texts,
    rule: Rule,
    outputs: _Outputs,
    against: list[str],
    judgements: list[ReadJudgement] | None,
    add: bool,
    memory: float | None,
    database_url: str | None,
) -> None:
    from textsim_db.dedupe.judged_records import JudgedKeys
    from textsim_db.dedupe.removals import deduplicate
    from textsim_db.dedupe.stored_matches import store_sizes

    start = time.monotonic()
    added = None
    with _opened(against, database_url) as corpora:
        rule = rule.against(corpora)
        addition = None
        if add:
            addition = _addition_file(corpora, texts.records, rule, outputs, judgements)
        result = None if addition is None else addition.read()
        if result is not None and addition is not None:
            print_message(
                f"{shown(addition.path)} has the result of an earlier run with the same records, which "
                "is used; to compare them anew, remove the file"
            )
        if result is None:
            most = None if memory is None else int(memory * 1e9)
            judged = [
                JudgedKeys(*each[:3], each.place, each.hashes or (None, None))
                for each in judgements or ()
            ]
            with loading(texts.records, texts) as load:
                result = deduplicate(
                    load, rule, load.after_batch, corpora, judged, most, texts.of_numbers
                )
        faults = _faults(texts, result)
        if faults and len(faults) == result.documents:
            first = ": ".join(faults[min(faults)])
            raise InputError(f"no record can be compared, so nothing was written: {first}")
        page = None
        if is_page(outputs.report):
            from textsim_db.review.report_pages import RemovalPage

            page = RemovalPage(result, rule, corpora)
        if addition is not None:
            addition.write(result)
            added = add_documents(corpora[0], texts.records, _documents_to_add(texts, result))
            store_sizes(corpora[0], result.cluster_sizes(), result.links(), texts.keys)
    faults = _faults(texts, result)
    choices = {"scope": texts.records.columns.scope, "against": against}
    _write_outputs(texts, result, outputs, page, faults, choices)
    seconds = time.monotonic() - start
    dropped = len(faults) if texts.drop_faulty else 0
    print_message(_summary(result, seconds, dropped))
    if texts.records.columns.appended:
        print_message('the output has the removed records, too; their field "kept" is false')
    if result.summary is not None:
        tips = keep_apart_tips(result.summary, rule.config(), is_page(outputs.report))
        for line in summary_lines(result.summary, tips, partial(_name, texts)):
            print_message(shown(line))
    if texts.html.texts:
        print_message(shown(texts.html.note(partial(_name, texts))))
    if result.similar_scopes:
        print_message(similar_scopes_note(result.similar_scopes))
    if added and result.recounted:
        print_message(
            f"{count(len(result.recounted), 'record')} not counted again, because an earlier run with "
            "--add had the same keys",
            logging.WARNING,
        )
    if result.stale_judgements:
        number = count(result.stale_judgements, "judgement")
        print_message(
            f"{number} not obeyed, because a text has changed since: judge the pair again"
        )
    if result.without_words:
        print_message(without_words_note(result.without_words))
    if memory is not None and (taken := _peak_memory()) > memory * 1e9:
        print_message(
            f"the process took up to {taken / 1e9:.2f} GB of memory: --memory is the limit of the "
            "largest arrays, and the program, the records and the words need some besides"
        )
    action = "left out" if texts.drop_faulty else "kept"
    uncompared = Refusals(f"{action}, because it cannot be compared")
    for fault in faults.values():
        uncompared.add(fault)
    uncompared.show()
    if added:
        refusals = Refusals()
        refusals.add_documents(added.refused)
        print_report(against[0], added, refusals, seconds)
    if faults or (added and (added.refused or added.twins)):
        raise typer.Exit(1)


def _peak_memory() -> int:
    """Return the most bytes of memory that this process has had."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def _addition_file(
    corpora: list[Corpus],
    records: RecordFiles,
    rule: Rule,
    outputs: _Outputs,
    judgements: list[ReadJudgement] | None,
) -> AdditionFile:
    server = corpora[0]._current.store.engine.url.render_as_string(hide_password=True)
    how = (records.columns, records.form, rule.preference, *rule[2:], judgements)
    return AdditionFile(
        f"{outputs.lasting()}.added",
        [file.path for file in records.files],
        (server, *(corpus.name for corpus in corpora), *how),
    )


def _write_outputs(
    texts: _Texts,
    result: Deduplication,
    outputs: _Outputs,
    page: RemovalPage | None,
    faults: dict[int, Refusal],
    choices: dict[str, Sequence[str]],
) -> None:
    records = texts.records
    if outputs.output is not None:
        appended = result.annotations() if records.columns.appended else {}
        stays = result.mask() | bool(appended)
        if texts.drop_faulty:
            stays[list(faults)] = False
        records.write(stays, outputs.output, appended)
    from textsim_db.files.records import replacing

    if outputs.report is None:
        return
    if page is None:
        write_clusters(outputs.report, result, texts.keys, records.file_of)
        return
    all_texts = (record.text for record in records)
    listed = [*map(": ".join, faults.values())]
    keys = _shown_keys(texts)
    html = page.html(records.title, all_texts, keys, listed, not texts.drop_faulty, choices)
    with replacing(outputs.report) as file:
        file.write(html.encode())


def _name(texts: _Texts, number: AnyDocument) -> str:
    """Return the name of a record, or of a document of a corpus, for a message."""
    if not isinstance(number, int):
        return f'"{number.key}" of corpus "{number.corpus}"'
    key = texts.keys[number]
    return texts.records.place(number) if key is None else f'"{key}"'


def _shown_keys(texts: _Texts) -> list[str | None]:
    """Return the keys of records for the page, with the files of the records if there are several."""
    files = map(texts.records.file_of, range(len(texts.keys)))
    return [
        key if file is None else ", ".join(filter(None, (key, file)))
        for key, file in zip(texts.keys, files, strict=True)
    ]


def _faults(texts: _Texts, result: Deduplication) -> dict[int, Refusal]:
    refused = {
        number: Refusal(texts.records.place(number), reason) for number, reason in result.refused
    }
    return texts.faults | refused


def _documents_to_add(
    texts: _Texts, result: Deduplication
) -> Iterator[tuple[str | None, str, str | None]]:
    """Yield the records that stay and can be compared, as (key, text, scope)."""
    stays = result.mask()
    stays[[number for number, _ in result.refused]] = False
    for number, (text, _, scope, _) in enumerate(texts):
        if stays[number] and text is not None:
            yield texts.keys[number], text, scope


def _summary(result: Deduplication, seconds: float, dropped: int) -> str:
    matched = result.count_stored()
    removed = len(result.removals) - matched
    clusters = len({each.kept for each in result.removals if isinstance(each.kept, int)})
    rate = speed(result.documents, seconds)
    return (
        f"{count(result.documents, 'document')}: "
        f"{result.documents - removed - matched - dropped:,} kept, "
        + (f"{dropped:,} left out, " if dropped else "")
        + (f"{matched:,} removed that match a corpus, " if matched else "")
        + f"{removed:,} removed from {count(clusters, 'cluster')}; {seconds:.1f} s{rate}"
    )
