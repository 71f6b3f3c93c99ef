"""The run of textsim dedupe: compares the records, and writes the outputs and the messages."""

from __future__ import annotations

import logging
import resource
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import typer

from textsim_db.cli.dedupe_reports import (
    AdditionFile,
    HtmlCount,
    is_page,
    keep_apart_tips,
    similar_scopes_note,
    summary_lines,
    write_clusters,
)
from textsim_db.cli.document_commands import add_documents, print_report, without_words_note
from textsim_db.cli.messages import Refusals, print_message
from textsim_db.cli.opening import connect, is_file_name
from textsim_db.cli.progress_lines import loading, speed
from textsim_db.errors import CorpusNotFound, InputError
from textsim_db.files.records import is_special, replacing
from textsim_db.results import Refusal
from textsim_db.results.shown_values import count, shown

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.dedupe.against_corpora import JudgedKeys
    from textsim_db.dedupe.removal_summary import AnyDocument
    from textsim_db.dedupe.removals import Deduplication, Document, Rule, StandingText
    from textsim_db.files.judgement_files import ReadJudgement
    from textsim_db.files.several_files import RecordFiles
    from textsim_db.review.report_pages import RemovalPage


class Standing:
    """The records of the files of --against, as documents that stand; collects the faults."""

    def __init__(self, files: Sequence[RecordFiles]) -> None:
        self.files = files
        self.faults: list[Refusal] = []

    def __iter__(self) -> Iterator[StandingText]:
        from textsim_db.dedupe.removal_summary import StoredDocument

        self.faults.clear()
        for records in self.files:
            for number, record in enumerate(records, start=1):
                if record.fault is not None:
                    place = f"{records.title}, {record.fault.key}"
                    self.faults.append(Refusal(place, record.fault.reason))
                elif record.text is not None:
                    name = StoredDocument(records.title, record.key or str(number))
                    yield name, record.text, record.scope


class Outputs(NamedTuple):
    output: str | None
    """The records that stay."""
    report: str | None
    """The clusters."""

    def lasting(self) -> str | None:
        """Return the first that is neither standard output nor a pipe."""
        return next((name for name in self if name and name != "-" and not is_special(name)), None)


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
                error.add_note(
                    "no file has this name; to begin with an empty corpus: textsim corpus create NAME"
                )
            raise


@dataclass
class Texts:
    """The texts of records with their values for --keep; collects the keys and the faults."""

    records: RecordFiles
    with_keys: bool
    drop_faulty: bool
    """Whether records with a fault do not stay."""
    judged: Collection[str] = ()
    """The keys that the judgements of a file name."""
    clusters_of_one: bool = False
    """Whether an annotated record alone has a cluster."""
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

    def all_faults(self, refused: Iterable[tuple[int, str]]) -> dict[int, Refusal]:
        """Return the faults, with those of records that the comparison refused."""
        return self.faults | {n: Refusal(self.records.place(n), reason) for n, reason in refused}

    def of(self, numbers: Collection[int]) -> dict[int, str]:
        """Read the records again, and return the texts of some by their places."""
        texts = enumerate(record.text for record in self.records)
        return {number: text for number, text in texts if number in numbers and text is not None}


def dedupe_file(
    texts: Texts,
    rule: Rule,
    outputs: Outputs,
    against: list[str],
    judgements: list[ReadJudgement] | None,
    add: bool,
    memory: int | None,
    database_url: str | None,
    standing: Standing,
) -> None:
    from textsim_db.dedupe.removals import deduplicate

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
            judged = [] if judgements is None else _judged_keys(judgements)
            with loading(texts.records) as load:
                result = deduplicate(
                    texts, rule, load.after_batch, corpora, judged, memory, texts.of, standing
                )
            standing.faults += (
                Refusal(f'{name.corpus}, "{name.key}"', reason)
                for name, reason in result.refused_standing
            )
        faults = texts.all_faults(result.refused)
        if faults and len(faults) == result.documents:
            first = ": ".join(faults[min(faults)])
            raise InputError(f"no record can be compared, so nothing was written: {first}")
        page = None
        if is_page(outputs.report):
            from textsim_db.review.report_pages import RemovalPage

            page = RemovalPage(result, rule, corpora)
        if addition is not None:
            from textsim_db.dedupe.against_corpora import store_sizes

            addition.write(result)
            added = add_documents(corpora[0], texts.records, _documents_to_add(texts, result))
            store_sizes(corpora[0], result.cluster_sizes(), result.links(), texts.keys)
    faults = texts.all_faults(result.refused)  # the result of an earlier run had read no record
    choices = {
        "scope": texts.records.columns.scope,
        "against": against or [records.title for records in standing.files],
    }
    _write_outputs(texts, result, outputs, page, faults, choices)
    seconds = time.monotonic() - start
    dropped = len(faults) if texts.drop_faulty else 0
    print_message(_summary(result, seconds, dropped))
    if texts.records.columns.appended:
        print_message('the output has the removed records, too; their field "kept" is false')
    if result.summary is not None:
        tips = keep_apart_tips(result.summary, rule.config, is_page(outputs.report))
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
    if memory is not None and (taken := _peak_memory()) > memory:
        print_message(
            f"the process took up to {taken / 1e9:.2f} GB of memory: --memory is the limit of the "
            "largest arrays, and the program, the records and the words need some besides"
        )
    show_uncompared(faults.values(), "left out" if texts.drop_faulty else "kept")
    show_uncompared(standing.faults, "not looked at")
    if added:
        refusals = Refusals()
        refusals.add_documents(added.refused)
        print_report(against[0], added, refusals, seconds)
    if faults or standing.faults or (added and (added.refused or added.twins)):
        raise typer.Exit(1)


def _judged_keys(judgements: list[ReadJudgement]) -> list[JudgedKeys]:
    from textsim_db.dedupe.against_corpora import JudgedKeys

    return [JudgedKeys(*each[:3], each.place, each.hashes or (None, None)) for each in judgements]


def show_uncompared(faults: Iterable[Refusal], action: str) -> None:
    """Print the records that cannot be compared; action: what became of them."""
    uncompared = Refusals(f"{action}, because it cannot be compared")
    for fault in faults:
        uncompared.add(fault)
    uncompared.show()


def _peak_memory() -> int:
    """Return the most bytes of memory that this process has had."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def _addition_file(
    corpora: list[Corpus],
    records: RecordFiles,
    rule: Rule,
    outputs: Outputs,
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
    texts: Texts,
    result: Deduplication,
    outputs: Outputs,
    page: RemovalPage | None,
    faults: dict[int, Refusal],
    choices: dict[str, Sequence[str]],
) -> None:
    records = texts.records
    if outputs.output is not None:
        appended = {}
        if records.columns.appended:
            appended = result.annotations(texts.keys, texts.clusters_of_one)
        stays = result.mask() | bool(appended)
        if texts.drop_faulty:
            stays[list(faults)] = False
        records.write(stays, outputs.output, appended)
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


def _name(texts: Texts, number: AnyDocument) -> str:
    """Return the name of a record, or of a document that stands, for a message."""
    if not isinstance(number, int):
        kind = "" if is_file_name(number.corpus) else "corpus "
        return f'"{number.key}" of {kind}"{number.corpus}"'
    key = texts.keys[number]
    return texts.records.place(number) if key is None else f'"{key}"'


def _shown_keys(texts: Texts) -> list[str | None]:
    """Return the keys of records for the page, with the files of the records if there are several."""
    files = map(texts.records.file_of, range(len(texts.keys)))
    return [
        key if file is None else ", ".join(filter(None, (key, file)))
        for key, file in zip(texts.keys, files, strict=True)
    ]


def _documents_to_add(
    texts: Texts, result: Deduplication
) -> Iterator[tuple[str | None, str, str | None]]:
    """Yield the records that stay and can be compared, as (key, text, scope)."""
    stays = result.mask()
    stays[[number for number, _ in result.refused]] = False
    for number, (text, _, scope, _) in enumerate(texts):
        if stays[number] and text is not None:
            yield texts.keys[number], text, scope


def _summary(result: Deduplication, seconds: float, dropped: int) -> str:
    matched = result.count_stored()
    stands = "a file" if result.standing_forms else "a corpus"
    removed = len(result.removals) - matched
    clusters = len({each.kept for each in result.removals if isinstance(each.kept, int)})
    rate = speed(result.documents, seconds)
    return (
        f"{count(result.documents, 'document')}: "
        f"{result.documents - removed - matched - dropped:,} kept, "
        + (f"{dropped:,} left out, " if dropped else "")
        + (f"{matched:,} removed that match {stands}, " if matched else "")
        + f"{removed:,} removed from {count(clusters, 'cluster')}; {seconds:.1f} s{rate}"
    )
