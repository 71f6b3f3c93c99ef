"""textsim passages, contamination and quote: the words that texts share with documents."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import typer

from textsim_db.cli import options
from textsim_db.cli.dedupe_reports import LINES, WEB_PAGE, check_report
from textsim_db.cli.messages import Refusals, print_message, print_object, print_result
from textsim_db.cli.opening import connect
from textsim_db.cli.operations import Call, Operation, note_unknown_scope
from textsim_db.cli.options import check_output
from textsim_db.cli.output import Format, write
from textsim_db.cli.progress_lines import counted
from textsim_db.errors import DocumentError, DocumentNotFound, InputError
from textsim_db.files.file_kinds import FileFormat
from textsim_db.files.records import replacing
from textsim_db.results import Refusal
from textsim_db.results.html import end_of_start, start_of_end
from textsim_db.results.shown_values import count
from textsim_db.text.storable import to_bytes

if TYPE_CHECKING:
    from textsim_db.files.read_documents import Document
    from textsim_db.results import Contamination, Passage, Quotation
    from textsim_db.results.rows import CommonRun


_SHOWN_AROUND = 30
"""The characters of the text that a table shows before and after a passage."""
_MOST_SHOWN = 160
"""A passage of more characters is shown without its middle."""
_MOST_DOCUMENTS = 5
"""A table shows this many documents of a record, and says how many more there are."""

_PASSAGE_COLUMNS = ("words", "key", "in_text", "in_document", "start", "end")


def _show_passages(call: Call) -> None:
    from textsim_db.sketch.sketch_texts import places_of_units

    text, passage_list, config = call.arguments["text"], call.result, call.corpus.config
    places = places_of_units(text, config)

    def marked(run: Passage | CommonRun) -> str:
        return _marked(text, *places.span(run.in_text, run.words))

    def shown_run(run: Passage) -> str:
        return marked(run) if call.form is Format.TABLE else text[run.start : run.end]

    rows = ((*(getattr(p, name) for name in _PASSAGE_COLUMNS), shown_run(p)) for p in passage_list)
    if not passage_list:
        note_unknown_scope(call.corpus, call.arguments["scope"])
    write((*_PASSAGE_COLUMNS, "passage"), rows, call.form)
    for run in passage_list.common:
        print_message(f"in some {count(run.documents, 'document')}, not listed: {marked(run)}")
    words, least = len(places.starts), call.arguments["min_words"] or config.passages or 0
    if words < least:
        units = count(words, config.shingle.noun)
        print_message(f"the text has {units}, and a passage has {least} or more")
    documents = len({passage.key for passage in passage_list})
    print_message(f"{count(len(passage_list), 'passage')} in {count(documents, 'document')} found")


PASSAGES = Operation(
    "passages",
    """List the runs of words that a text shares with documents, the longest first.

    The corpus must have passages. It prints the words of each run, the key of the document, and the
    numbers of words before the run in the text and in the document. start and end are the characters of
    the text before the run, and up to its end. Then it prints the run itself, as the text has it. A
    table shows it in brackets, between the words around it, and without its middle if it is long.

    Examples:
    - `textsim passages letters --file letter.txt`
    - `textsim passages letters "the text to look for" --min-words 20 --format jsonl`

    """,
    columns=_PASSAGE_COLUMNS,
    show=_show_passages,
)


REGIONS = Operation(
    "regions",
    """List the regions of documents that a text has in changed words, the longest first.

    The corpus must have passages. A region has one or more runs of words that the text shares with the
    document, and no gap between them has more than --gap words. The share is that of the equal words.
    --format jsonl has the runs of each region.

    Examples:
    - `textsim regions letters --file letter.txt`

    """,
    columns=(
        *("share", "key", "in_text", "words_in_text", "in_document", "words_in_document"),
        *("start", "end"),
    ),
    noun="region",
)


_ONLY_RUNS = "without a key, only documents with {} {}s of the quotation in a row are compared"
_QUOTATION_COLUMNS = ("verdict", "key", "share", "quotation", "document", "kinds")


def _show_quotation(call: Call) -> None:
    quotation: Quotation = call.result
    if call.form is Format.JSONL:
        pieces = [piece._asdict() for piece in quotation.pieces]
        differences = [difference._asdict() for difference in quotation.differences]
        print_object(quotation._asdict() | {"pieces": pieces, "differences": differences})
    else:
        verdict = quotation[:3]
        rows = [
            (*verdict, *words, " ".join(kinds)) for *words, kinds in quotation.shown_differences()
        ]
        write(_QUOTATION_COLUMNS, rows or [(*verdict, "", "", "")], call.form)
    if quotation.verdict in ("altered", "absent"):
        note_unknown_scope(call.corpus, call.arguments["scope"])
        if quotation.verdict == "absent" and call.arguments["key"] is None:
            config = call.corpus.config
            print_message(_ONLY_RUNS.format(config.passages, config.shingle.noun))
        raise typer.Exit(1)


QUOTE = Operation(
    "quote",
    """Say whether a quotation stands in a document, where, and what differs.

    The verdict is exact if the words stand in a row in the document, pieces if an ellipsis or words in
    square brackets divide them, altered if a run of the document has at least 70 % of them, and absent
    otherwise. A row has words of the quotation that differ, the words of the document in their place or
    those that an ellipsis leaves out, and their kinds, such as numbers and negations. --format jsonl
    prints an object with the places of the pieces. Without --key, the corpus must have passages. If the
    verdict is altered or absent, the exit status is 1.

    Examples:
    - `textsim quote laws "the tenant shall not fell any tree" --key tenancy`
    - `textsim quote laws --file quotation.txt --format jsonl`

    """,
    columns=_QUOTATION_COLUMNS,
    show=_show_quotation,
)


def quotations(
    quotations: list[str],
    /,
    *,
    against: str,
    key: str | None = None,
    text: str = "text",
    report: str | None = None,
    form_of_files: FileFormat,
    glob: str = "*",
    scope: str | None = None,
    form: Format = Format.TABLE,
    database_url: str | None = None,
) -> None:
    """Say of each quotation of a file whether it stands in a document, and what differs.

    The verdicts are those of quote. A row has the verdict, the key of the document, the share of
    unaltered words, the quotation, and the words that differ or are left out with their kinds. Without
    --key, the corpus must have passages. If a quotation is altered, absent or refused, such as one of
    three words, the exit status is 1.

    Args:
        quotations: Files and folders of records; "-" is standard input, with JSON lines.
        against (CORPUS): The corpus of the documents.
        key (COLUMN): Column, or member in JSON, with the key of the document that is quoted. By default
            each quotation is looked for in all documents.
        report: Write a page for a browser to this file, whose name ends in .html.
        scope: Search the documents of this scope only. A scoped corpus requires it.

    Examples:
    - `textsim quotations answers.jsonl --against laws --key document`
    - `textsim quotations answers.jsonl --against laws --report quotes.html`
    - `textsim quotations answers.csv --against laws --format jsonl > verdicts.jsonl`

    """
    from textsim_db.files.read_documents import Inputs

    refusals, counts = Refusals(), Counter[str]()
    # Without a key, the text stands in for it: keys are read with each text.
    inputs = Inputs(quotations, refusals.add, form_of_files, [key or text], text, glob=glob)
    inputs.check_packages()
    if report is not None:
        check_report(report, WEB_PAGE)
        check_output("--report", report, (("QUOTATIONS", name) for name in inputs.files()))
    shown_rows: list[tuple[Quotation, str]] = []
    with connect(database_url) as db:
        corpus = db.corpus(against)

        def verdicts() -> Iterator[tuple[Any, ...]]:
            for document, quoted, *_ in inputs:
                try:
                    verdict = corpus.quote(quoted, document if key else None, scope)
                except (DocumentError, DocumentNotFound) as error:
                    refusals.add(Refusal(f'quotation "{quoted[:_MOST_SHOWN]}"', str(error)))
                else:
                    counts[verdict.verdict] += 1
                    if report is not None:
                        shown_rows.append((verdict, quoted))
                    yield (*verdict[:3], quoted, _differences_as(verdict, form))

        are_printed = form is not Format.TABLE
        rows = counted("verifying", "quotations", verdicts(), inputs, are_printed)
        write(("verdict", "key", "share", "text", "differences"), rows, form)
        if counts["altered"] or counts["absent"]:
            note_unknown_scope(corpus, scope)
    named = (f"{counts[name]:,} {name}" for name in ("exact", "pieces", "altered", "absent"))
    summary = f"{count(counts.total(), 'quotation')}: {', '.join(named)}"
    if refusals.count:
        summary += f"; {refusals.count:,} refused"
    if report is not None:
        _write_page(report, f"quotations of {against}", summary, shown_rows)
    print_message(summary)
    if counts["absent"] and key is None:
        print_message(_ONLY_RUNS.format(corpus.config.passages, corpus.config.shingle.noun))
    refusals.show()
    if refusals.count or counts["altered"] or counts["absent"]:
        raise typer.Exit(1)


def _write_page(path: str, title: str, summary: str, verdicts: list[tuple[Quotation, str]]) -> None:
    from textsim_db.review.rendering import render

    rows = [(each.verdict, each.key, text, each.shown_differences()) for each, text in verdicts]
    with replacing(path) as file:
        file.write(render("quotations.html", title=title, summary=summary, rows=rows).encode())


def _differences_as(quotation: Quotation, form: Format) -> list[dict[str, Any]] | str:
    names = ("quotation", "document", "kinds")
    rows = quotation.shown_differences()
    if form is Format.JSONL:
        return [dict(zip(names, row, strict=True)) for row in rows]
    return "; ".join(" ".join([f'"{own}" for "{their}"', *kinds]) for own, their, kinds in rows)


def _marked(text: str, start: int, end: int) -> str:
    """Return a run of a text in brackets, between the words around it, on one line."""
    before, run, after = text[:start], text[start:end], text[end:]
    if len(before) > _SHOWN_AROUND:
        before = before[start_of_end(before, _SHOWN_AROUND) :]
    if len(after) > _SHOWN_AROUND:
        after = after[: end_of_start(after, _SHOWN_AROUND)]
    if len(run) > _MOST_SHOWN:
        half = _MOST_SHOWN // 2
        run = f"{run[: end_of_start(run, half)]} ... {run[start_of_end(run, half) :]}"
    return " ".join(f"{before}[{run}]{after}".split())


def contamination(
    testsets: list[str],
    /,
    *,
    against: str,
    min_words: int | None = None,
    report: str | None = None,
    form_of_files: FileFormat,
    glob: str = "*",
    key_columns: list[str] | None = None,
    text: str = "text",
    scope: str | None = None,
    max_documents: int | None = None,
    form: Format = Format.TABLE,
    database_url: str | None = None,
) -> None:
    """Say which records of a test set share passages with the documents of a corpus.

    The corpus must have passages. For each record that shares one, it prints the key, the number of its
    words, the share of them that are in passages, the keys of the documents, and the number of words in
    runs that very many documents have, whose documents are not listed. A table shows the first five
    documents of a record. --report writes all records to a file instead, with the document and the
    characters of each passage. A table needs all its rows in memory; the report and other formats are
    written row by row, so the test set may have any size. At the end it prints how many records share a
    passage, by their coverage; with --report and --json as an object.

    Args:
        testsets: Files and folders of records; "-" is standard input, with JSON lines.
        against (CORPUS): The corpus of the training data.
        report: Write a line of JSON for each record to this file, whose name ends in .jsonl.
        scope: Search the documents of this scope only. A scoped corpus requires it.

    Examples:
    - `textsim contamination questions.jsonl --against training`
    - `textsim contamination questions.jsonl --against training --min-words 20 --report found.jsonl`

    """
    from textsim_db.files.read_documents import Inputs

    refusals = Refusals()
    keys = key_columns or ["id"]
    inputs = Inputs(testsets, refusals.add, form_of_files, keys, text, glob=glob)
    inputs.check_packages()
    if report is not None:
        if form is Format.CSV:
            raise options.misused(
                "--format", "--report writes JSON lines; leave out one of the two"
            )
        check_report(report, LINES)
        check_output("--report", report, (("TESTSET", name) for name in inputs.files()))
    with connect(database_url) as db:
        corpus = db.corpus(against)
        counts = _RecordCounts(min_words or corpus.config.passages or 0)
        compared = corpus.contamination(storable(inputs, refusals), min_words, scope, max_documents)
        are_printed = report is None and form is not Format.TABLE
        rows = counted("comparing", "records", counts.counted(compared), inputs, are_printed)
        first = list(islice(rows, 1))
        if refusals.count and not first:
            refusals.show()
            raise InputError("no record could be compared")
        all_rows = chain(first, rows)
        if report is None:
            shared = (
                (*row[:3], _shown_documents(row.documents, form), _count_words(row.common))
                for row in all_rows
                if row.documents or row.common
            )
            write(("key", "words", "coverage", "documents", "left_out"), shared, form)
        else:
            _write_report(report, all_rows)
        if not counts.contaminated:
            note_unknown_scope(corpus, scope)
    # With --report these numbers are the result of the command, so --json prints them.
    print_numbers = print_message if report is None else print_result
    print_numbers(counts.summary(), **counts.numbers())
    if counts.left_out:
        print_message(f"{count(counts.left_out, 'record')} with runs in too many documents to list")
    if counts.too_short:
        records_below = count(counts.too_short, "record")
        print_message(
            f"{records_below} of fewer than {counts.least_words} {corpus.config.shingle.noun}s, which "
            "can share no passage"
        )
    refusals.show()
    if refusals.count:
        raise typer.Exit(1)


def _shown_documents(keys: list[str], form: Format) -> list[str] | str:
    """Return the keys of documents as a format shows them: a table only the first."""
    if form is Format.JSONL:
        return keys
    if form is Format.CSV or len(keys) <= _MOST_DOCUMENTS:
        return ", ".join(keys)
    others = len(keys) - _MOST_DOCUMENTS
    return f"{', '.join(keys[:_MOST_DOCUMENTS])} and {others:,} more"


def storable(documents: Iterable[Document], refusals: Refusals) -> Iterator[tuple[str, str]]:
    """Yield the keys and texts of documents, and refuse texts that PostgreSQL cannot store."""
    for key, text, *_ in documents:
        try:
            to_bytes(text)
        except DocumentError as error:
            refusals.add(Refusal(f'record "{key}"', str(error)))
        else:
            yield key, text


def _count_words(runs: Iterable[CommonRun]) -> int:
    """Return the number of words in runs, which may overlap."""
    return len({place for run in runs for place in range(run.in_text, run.in_text + run.words)})


_COVERAGE_LIMITS = (0.2, 0.5, 0.8)
"""The limits of the ranges of coverage in which records are counted; a coverage of 0 is apart."""


class _RecordCounts:
    """How many records there are, how many of them share passages, and how much of them is covered."""

    def __init__(self, least_words: int) -> None:
        self.least_words = least_words
        self.records = 0
        self.contaminated = 0
        self.left_out = 0
        """The number of records with runs whose documents are not listed."""
        self.too_short = 0
        """The number of records that have fewer words than a passage."""
        self.by_coverage = [0] * (len(_COVERAGE_LIMITS) + 1)
        """The number of contaminated records in each range of coverage."""

    def counted(self, rows: Iterable[Contamination]) -> Iterator[Contamination]:
        for row in rows:
            self.records += 1
            self.contaminated += bool(row.documents)
            self.left_out += bool(row.common)
            self.too_short += row.words < self.least_words
            self.by_coverage[bisect_right(_COVERAGE_LIMITS, row.coverage)] += bool(row.documents)
            yield row

    def summary(self) -> str:
        records = count(self.records, "record")
        shared = f"{self.contaminated:,} of {records} share a passage with a document"
        if not self.contaminated:
            return shared
        names = [
            *(f"below {limit}" for limit in _COVERAGE_LIMITS),
            f"from {_COVERAGE_LIMITS[-1]} on",
        ]
        ranges = (
            f"{number:,} {name}" for number, name in zip(self.by_coverage, names, strict=True)
        )
        return f"{shared}; their coverage: {', '.join(ranges)}"

    def numbers(self) -> dict[str, Any]:
        limits = map(str, (0, *_COVERAGE_LIMITS))
        by_coverage = dict(zip(limits, self.by_coverage, strict=True))
        return {
            "records": self.records,
            "contaminated": self.contaminated,
            "contaminated_by_coverage": by_coverage,
        }


def _write_report(path: str, rows: Iterable[Contamination]) -> None:
    with replacing(path) as file:
        for row in rows:
            members = row._asdict() | {
                "passages": [{"key": p.key, "start": p.start, "end": p.end} for p in row.passages],
                "common": [run._asdict() for run in row.common],
            }
            file.write(json.dumps(members, ensure_ascii=False).encode() + b"\n")
