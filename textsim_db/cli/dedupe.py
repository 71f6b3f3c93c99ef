"""textsim dedupe: the near-duplicates of a file or a table, in one command."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from textsim_db.cli.add_documents import add_documents, print_report, speed
from textsim_db.cli.connections import connect
from textsim_db.cli.dedupe_reports import (
    Page,
    check_report,
    check_table_report,
    is_page,
    write_clusters,
)
from textsim_db.cli.messages import Refusals, print_first, print_message
from textsim_db.cli.one_text import is_file_name
from textsim_db.cli.options import (
    DatabaseUrl,
    LinkageOption,
    TextColumn,
    column_option,
    misused,
    path_option,
    record_kind_option,
)
from textsim_db.cli.output import check_output, check_writable
from textsim_db.cli.progress import loading
from textsim_db.cli.settings_options import PartialSettings, check_settings, with_settings
from textsim_db.errors import ConfigurationError, CorpusNotFound, InputError, shown
from textsim_db.files.kind_by_name import Kind
from textsim_db.settings import PAIR_SETTINGS, CorpusSettings
from textsim_db.show.numbers import count

if TYPE_CHECKING:
    from textsim_db.cluster.keep_rule import Preference
    from textsim_db.corpus import Corpus
    from textsim_db.database import Database
    from textsim_db.dedupe.addition_file import AdditionFile
    from textsim_db.dedupe.by_temporary_corpus import Deduplication, Document, JudgedDocuments, Rule
    from textsim_db.dedupe.table_clusters import Columns
    from textsim_db.files.read_judgements import ReadJudgement
    from textsim_db.files.record_files import RecordFile


def _keep(text: str) -> Preference:
    from textsim_db.cluster.keep_rule import Preference

    try:
        return Preference.parse(text)
    except ConfigurationError as error:
        raise typer.BadParameter(shown(str(error))) from None


@with_settings(*PAIR_SETTINGS)
def dedupe(
    settings: PartialSettings,
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="INPUT", help='A file of records, or "-" for standard input. Not with --table.'
        ),
    ] = None,
    output: Annotated[
        str | None,
        path_option(
            "Write the records that stay to this file, in the format of its ending: .jsonl, .csv, "
            '.tsv or .parquet, each also with .gz. Standard output, "-", and a name without an ending '
            "keep the format of INPUT.",
            "--output",
            "-o",
        ),
    ] = None,
    report: Annotated[
        str | None,
        path_option(
            "Write what was removed to this file. With the ending .jsonl it has a line of JSON for "
            "each cluster. With .html it is a page that stands alone, with the largest clusters and a "
            "sample of each tenth of similarity. With --table it is a page."
        ),
    ] = None,
    table: Annotated[
        str | None, typer.Option(metavar="TABLE", help="Read a table of the database, not a file.")
    ] = None,
    into: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="With --table: create this table for the clusters."),
    ] = None,
    replace_rows: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="With --into: if the table exists from an earlier run, replace its rows.",
        ),
    ] = False,
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
        path_option(
            "Obey the judgements of this file, which name records by their keys (--key). It is a "
            "file as textsim judgements import reads it, and textsim judgements list writes it."
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
    kind: Annotated[
        Kind, record_kind_option("Format of INPUT; auto decides by its name.")
    ] = Kind.AUTO,
    output_kind: Annotated[
        Kind, record_kind_option("Format of the output; auto decides by its name.")
    ] = Kind.AUTO,
    text: TextColumn = "text",
    key: Annotated[
        list[str] | None,
        column_option(
            "Column, or member in JSON, with the key, for the report. Default: id if it exists. "
            "Repeat it if the key of a table has several columns."
        ),
    ] = None,
    scope: Annotated[
        str | None,
        column_option(
            "Column, or member in JSON, with the scope, such as a tenant: only documents of one "
            "scope are compared with each other."
        ),
    ] = None,
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
            help="Which document of a cluster stays: by order (of keys, in a table), by length, or "
            "by a column of numbers or of texts. A document without a value, or with NaN, stays only "
            "if no document of the cluster has a value.",
        ),
    ] = "first",
    linkage: LinkageOption = "kept",
    database_url: DatabaseUrl = None,
) -> None:
    """Remove the near-duplicates of a file, or list the near-duplicates of a table.

    INPUT is JSON lines, CSV, TSV or Parquet (needs PyArrow), each also gzip'ed. Records that stay are
    copied unchanged. If the output has another format, they are converted, or the command fails at the
    first record that the format cannot hold. The output file appears when it is complete. With the
    default linkage, each record that is removed is similar to the record that stays: the exact
    similarity reaches the threshold. Records that cannot be compared are kept and listed. With --table
    nothing is deleted: --into becomes a table (key, cluster, kept, similarity) to join with. If TABLE
    is attached to a corpus with the same columns, that corpus is used, unless a setting is given.

    It prints how many records were kept and removed.

    Examples:
    - `textsim dedupe articles.jsonl.gz -o unique.jsonl.gz --report clusters.jsonl`
    - `textsim dedupe articles.jsonl -o unique.jsonl --report removed.html`
    - `textsim dedupe articles.csv --text body --threshold 0.9 --keep longest -o -`
    - `textsim dedupe articles.tsv.gz -o unique.parquet`
    - `textsim dedupe --table article --text body --into article_cluster --keep max:score`
    - `textsim dedupe --table article --text body --into article_cluster --report removed.html`
    - `textsim dedupe tickets.jsonl --scope customer -o unique.jsonl`
    - `textsim dedupe this-week.jsonl --against news -o new.jsonl --report known.jsonl`
    - `textsim dedupe this-week.jsonl --against news --add -o new.jsonl`
    - `textsim dedupe articles.jsonl --judgements judgements.csv -o unique.jsonl`

    """
    from textsim_db.dedupe.by_temporary_corpus import Rule
    from textsim_db.dedupe.table_clusters import Columns
    from textsim_db.files.read_judgements import read_judgements
    from textsim_db.files.record_files import RecordColumns, RecordFile

    check_settings(settings)
    outputs = _Outputs(output, report)
    _check_usage(path, table, outputs, judgements, into, replace_rows)
    _check_against(against or [], table, settings)
    if judgements is not None and table is not None:
        raise misused("--judgements", "it needs a file, not --table")
    if add:
        _check_add(against or [], outputs)
    rule = Rule(keep, CorpusSettings(**settings, scoped=scope is not None), linkage)
    if table is not None:
        assert into is not None
        columns = Columns(key or ["id"], text, scope)
        target = _Target(into, replace_rows, report)
        _dedupe_table(table, target, columns, rule, not settings, database_url)
        return
    assert path is not None
    key_needed = add or bool(key) or judgements is not None
    if len(key or []) > 1:
        raise misused("--key", "here the key of a file has one column; a table may have several")
    wanted = RecordColumns(text, key[0] if key else "id", keep.column, key_needed, scope)
    judged = None if judgements is None else read_judgements(judgements)
    with RecordFile(path, wanted, kind) as records:
        if output is not None:
            records.convert_for(output, output_kind, drop_faulty)
        texts = _Texts(records, add or report is not None or judged is not None, drop_faulty)
        _dedupe_file(texts, rule, outputs, against or [], judged, add, database_url)


def _check_against(against: list[str], table: str | None, settings: PartialSettings) -> None:
    if against and table is not None:
        raise misused("--against", "it needs a file, not --table")
    if against and settings:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in settings)
        raise misused("--against", f"the corpus has settings already; leave out {options}")


def _known_corpus(db: Database, name: str) -> Corpus:
    """Open a corpus of --against; if its name is that of a file, say how the file becomes a corpus."""
    try:
        return db.corpus(name)
    except CorpusNotFound as error:
        if is_file_name(name):
            error.add_note(
                f"to compare with a file, make a corpus of it: textsim index NAME {name} --create"
            )
        raise


def _check_add(against: list[str], outputs: _Outputs) -> None:
    if not against:
        raise misused("--add", "it needs --against CORPUS")
    if outputs.lasting() is None:
        raise misused(
            "--add", "it needs a file for --output or --report, so that it can go on after a kill"
        )


def _check_usage(
    path: str | None,
    table: str | None,
    outputs: _Outputs,
    judgements: str | None,
    into: str | None,
    replace_rows: bool,
) -> None:
    output, report = outputs
    if (path is None) == (table is None):
        raise misused("INPUT", "give either a file or --table TABLE")
    if table is not None:
        if into is None or output is not None:
            raise misused("--table", "it needs --into TABLE for the clusters, and no --output")
        if report is not None:
            check_table_report(report)
            check_writable(report)
        return
    if into is not None:
        raise misused("--into", "it needs --table TABLE as well")
    if replace_rows:
        raise misused("--replace", "it needs --table and --into")
    if output is None and report is None:
        raise misused("--output", "give --output, or --report, or both")
    files = [("INPUT", path), ("--judgements", judgements)]
    read = [(argument, name) for argument, name in files if name is not None]
    if output is not None:
        way_out = "name another file, which may replace this file afterwards"
        check_output("--output", output, read, way_out)
    if report is not None:
        check_report(report)
        written = [] if output is None else [("OUTPUT", 1 if output == "-" else output)]
        check_output("--report", report, [*read, *written])


class _Outputs(NamedTuple):
    """The files to write."""

    output: str | None
    """The records that stay."""
    report: str | None
    """The clusters."""

    def lasting(self) -> str | None:
        """Return the first that is neither standard output nor a pipe."""
        from textsim_db.files.replace_file import is_special

        return next((name for name in self if name and name != "-" and not is_special(name)), None)


@dataclass
class _Texts:
    """The texts of records with their values for --keep; collects the keys and the faults."""

    records: RecordFile
    with_keys: bool
    drop_faulty: bool
    """Whether records with a fault do not stay."""
    keys: list[str | None] = field(default_factory=list)
    faults: dict[int, str] = field(default_factory=dict)
    """Why records cannot be compared, by their places."""

    def __iter__(self) -> Iterator[Document]:
        from textsim_db.dedupe.by_temporary_corpus import Document

        self.keys.clear()
        self.faults.clear()
        for number, record in enumerate(self.records):
            self.keys.append(record.key if self.with_keys else None)
            if record.fault is not None:
                self.faults[number] = record.fault
            yield Document(record.text, record.value, record.scope)


def _dedupe_file(
    texts: _Texts,
    rule: Rule,
    outputs: _Outputs,
    against: list[str],
    judgements: list[ReadJudgement] | None,
    add: bool,
    database_url: str | None,
) -> None:
    from textsim_db.dedupe.by_temporary_corpus import deduplicate

    start = time.monotonic()
    added = None
    with connect(database_url) as db:
        corpora = [_known_corpus(db, name) for name in against]
        rule = rule.against(corpora)
        addition = None
        if add:
            addition = _addition_file(db, texts.records, rule, outputs, against, judgements)
        result = None if addition is None else _earlier_result(addition)
        if result is None:
            judged = None if judgements is None else partial(_of_records, judgements, texts.keys)
            with loading(texts.records, texts) as load:
                result = deduplicate(db, load, rule, load.after_batch, corpora, judged)
        faults = _faults(texts, result)
        if faults and len(faults) == result.documents:
            first = faults[min(faults)]
            raise InputError(f"no record can be compared, so nothing was written: {first}")
        page = Page(result, rule, corpora) if is_page(outputs.report) else None
        if addition is not None:
            addition.write(result)
            added = add_documents(corpora[0], texts.records, _documents_to_add(texts, result))
    faults = _faults(texts, result)
    _write_outputs(texts, result, outputs, page, faults)
    seconds = time.monotonic() - start
    dropped = len(faults) if texts.drop_faulty else 0
    print_message(_summary(result, "removed", seconds, dropped))
    action = "left out" if texts.drop_faulty else "kept"
    print_first([f"{action}, because it cannot be compared: {each}" for each in faults.values()])
    if added:
        refusals = Refusals()
        refusals.add_documents(added.refused)
        print_report(against[0], added, refusals, seconds)
    if faults or (added and (added.refused or added.twins)):
        raise typer.Exit(1)


def _addition_file(
    db: Database,
    records: RecordFile,
    rule: Rule,
    outputs: _Outputs,
    against: list[str],
    judgements: list[ReadJudgement] | None,
) -> AdditionFile:
    """Return the file that notes the result beside an output, for the same records and arguments."""
    from textsim_db.dedupe.addition_file import AdditionFile

    server = db.engine.url.render_as_string(hide_password=True)
    how = (records.columns, rule.preference, rule.linkage, judgements)
    return AdditionFile(f"{outputs.lasting()}.added", records.path, (server, *against, *how))


def _earlier_result(addition: AdditionFile) -> Deduplication | None:
    """Return the result of an earlier run, with a message; None if there is none."""
    result = addition.read()
    if result is not None:
        print_message(
            f"{shown(addition.path)} has the result of an earlier run with the same records, which "
            "is used; to compare them anew, remove the file"
        )
    return result


def _write_outputs(
    texts: _Texts,
    result: Deduplication,
    outputs: _Outputs,
    page: Page | None,
    faults: dict[int, str],
) -> None:
    """Write the records that stay, and the report."""
    records = texts.records
    if outputs.output is not None:
        stays = result.mask()
        if texts.drop_faulty:
            stays[list(faults)] = False
        records.write(stays, outputs.output)
    if outputs.report is None:
        return
    if page is None:
        write_clusters(outputs.report, result, texts.keys)
        return
    all_texts = (record.text for record in records)
    shown_faults = list(faults.values()), not texts.drop_faulty
    page.write(outputs.report, records.name, all_texts, texts.keys, shown_faults)


def _faults(texts: _Texts, result: Deduplication) -> dict[int, str]:
    """Return why records could not be compared, by their places."""
    refused = {number: f"record {number + 1}: {reason}" for number, reason in result.refused}
    return texts.faults | refused


def _of_records(judgements: list[ReadJudgement], keys: list[str | None]) -> list[JudgedDocuments]:
    """Return the judgements of records, by their places."""
    from textsim_db.dedupe.by_temporary_corpus import JudgedDocuments

    judged = {key for judgement in judgements for key in judgement[:2]}
    places: dict[str, int] = {}
    for number, key in enumerate(keys):
        if key in judged and places.setdefault(key, number) != number:
            raise InputError(
                f'a judgement names "{shown(key)}", but records {places[key] + 1} and {number + 1} '
                "have this key"
            )
    # Keys without a record come after all records: a chain of judgements may lead through them.
    for number, key in enumerate(sorted(judged - places.keys()), start=len(keys)):
        places[key] = number
    return [JudgedDocuments(places[j.a], places[j.b], j.verdict, j.place) for j in judgements]


def _documents_to_add(
    texts: _Texts, result: Deduplication
) -> Iterator[tuple[str | None, str, str | None]]:
    """Yield the records that stay and can be compared, as (key, text, scope)."""
    stays = result.mask()
    stays[[number for number, _ in result.refused]] = False
    for number, (text, _, scope) in enumerate(texts):
        if stays[number] and text is not None:
            yield texts.keys[number], text, scope


class _Target(NamedTuple):
    """The table that the clusters are written to, and the page."""

    name: str
    is_replaced: bool
    """Whether the rows of an earlier run are replaced."""
    report: str | None


def _dedupe_table(
    name: str,
    into: _Target,
    columns: Columns,
    rule: Rule,
    may_use_corpus: bool,
    database_url: str | None,
) -> None:
    from textsim_db.db.engine import database_errors
    from textsim_db.dedupe import table_clusters
    from textsim_db.dedupe.by_temporary_corpus import deduplicate

    start = time.monotonic()
    keys: list[str] = []
    with connect(database_url) as db, database_errors():
        table = table_clusters.find_table(db.engine, name, columns, rule.preference)
        table_clusters.check_target(db.engine, table, into.name, into.is_replaced)
        documents = table_clusters.documents(db.engine, table, keys)
        shown_rule, rule = rule, table_clusters.by_place(rule)
        corpus = table_clusters.attached_corpus(db, table) if may_use_corpus else None
        if corpus is not None:
            print_message(f'the corpus "{shown(corpus.name)}" has this table indexed; it is used')
            shown_rule = shown_rule._replace(settings=corpus.config)
            result = table_clusters.deduplicate_attached(corpus, documents, keys, rule)
        else:
            with loading(None, documents) as load:
                result = deduplicate(db, load, rule, load.after_batch)
        if table_clusters.write_clusters(
            db.engine, table, into.name, into.is_replaced, keys, result
        ):
            print_message(f"the rows of {shown(into.name)} were replaced")
        refused = [
            f'the row with key "{keys[number]}": {reason}' for number, reason in result.refused
        ]
        if into.report is not None:
            page = Page(result, shown_rule, [])
            shown_keys = [keys[number] for number in page.numbers()]
            by_key = table_clusters.texts_by_key(db.engine, table, shown_keys)
            texts = (by_key.get(key, "") for key in keys)
            page.write(into.report, name, texts, keys, (refused, True), into.name)
    print_message(_summary(result, "to remove", time.monotonic() - start))
    print_first([f"skipped, because it cannot be compared: {fault}" for fault in refused])
    if refused:
        raise typer.Exit(1)


def _summary(result: Deduplication, removal: str, seconds: float, dropped: int = 0) -> str:
    removed, known = len(result.removals), len(result.standing)
    clusters = len({removal.kept for removal in result.removals})
    rate = speed(result.documents, seconds)
    return (
        f"{count(result.documents, 'document')}: "
        f"{result.documents - removed - known - dropped:,} kept, "
        + (f"{dropped:,} left out, " if dropped else "")
        + (f"{known:,} {removal} that match a corpus, " if known else "")
        + f"{removed:,} {removal} from {count(clusters, 'cluster')}; {seconds:.1f} s{rate}"
    )
