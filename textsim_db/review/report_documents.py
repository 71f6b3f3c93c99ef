"""The documents of a finished `textsim dedupe`: its report, the files that it read, and judgements.

The judgements stand in a file of JSON lines, as `textsim judgements list --format jsonl` writes it and
`textsim dedupe --judgements` reads it.
"""

from __future__ import annotations

import fcntl
import getpass
import json
import math
import os
import shlex
import tempfile
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from textsim_db.errors import InputError, JudgementExists
from textsim_db.files.file_kinds import BY_NAME
from textsim_db.files.records import in_temporary_folder, replacing
from textsim_db.files.several_files import RecordFiles
from textsim_db.measures.word_diff import ShownText
from textsim_db.read.stored_documents import Traits
from textsim_db.results import Judgement, Pair
from textsim_db.results.rows import Inspection
from textsim_db.results.shown_values import shown
from textsim_db.review.rendering import GuardsApart, NextCommand
from textsim_db.settings.named_values import VerdictName

_MOST_NOTE = 10_000
"""The bytes of a note, as in a corpus."""

JudgedPair = (
    tuple[str, str, VerdictName, str | None, str | None, float | None]
    | tuple[
        str,
        str,
        VerdictName,
        str | None,
        str | None,
        float | None,
        tuple[str | None, str | None] | None,
    ]
)
"""Two keys, the verdict, the note, the judge, the confidence, and the hashes of the texts."""

JudgementsOfPairs = dict[tuple[str, str], Judgement]


class JudgementFile:
    """Reads the file for each call, and replaces it whole, so that several processes may judge."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.read()

    def read(self) -> JudgementsOfPairs:
        """Return the judgements by their pairs; raises InputError with the line of a faulty one."""
        try:
            lines = Path(self.path).read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return {}
        except UnicodeDecodeError as error:
            raise InputError(f"{shown(self.path)}: {error}") from error
        stored = {}
        for number, line in enumerate(lines, 1):
            try:
                judgement = _judgement(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise InputError(
                    f"{shown(self.path)}, line {number} is no judgement, as textsim judgements list "
                    "--format jsonl writes it"
                ) from error
            stored[judgement.a, judgement.b] = judgement
        return stored

    def judgements(self) -> Iterable[Judgement]:
        return self.read().values()

    def judge(
        self,
        a: str,
        b: str,
        verdict: VerdictName,
        note: str | None = None,
        *,
        replaces: VerdictName | None = None,
        source: str | None = None,
        confidence: float | None = None,
    ) -> bool:
        """Record a judgement and return whether it is new; raises JudgementExists as Corpus.judge."""
        with self._changing() as stored:
            return _record(stored, (a, b, verdict, note, source, confidence), replaces)

    def _judge_many(
        self,
        judgements: Iterable[JudgedPair],
        replace: bool = False,
        place_of: Callable[[int], str] | None = None,
    ) -> int:
        """Record judgements, all or none, and return how many are new."""
        with self._changing() as stored:
            count = 0
            for number, given in enumerate(judgements):
                before = stored.get((min(given[:2]), max(given[:2])))
                try:
                    count += _record(stored, given, before.verdict if before and replace else None)
                except (JudgementExists, InputError) as error:
                    place = place_of(number) if place_of else f"judgement {number + 1}"
                    raise type(error)(f"{place}: {error}") from error
            return count

    def unjudge(self, a: str, b: str) -> bool:
        with self._changing() as stored:
            return stored.pop((min(a, b), max(a, b)), None) is not None

    @contextmanager
    def _changing(self) -> Iterator[JudgementsOfPairs]:
        """Lend the judgements to change, while no other process changes them."""
        # The file is replaced, so a lock on it would be a lock on the old file.
        folder = os.open(Path(self.path).resolve().parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            stored = self.read()
            before = dict(stored)
            yield stored
            if stored != before:
                self._write(stored)
        finally:
            os.close(folder)

    def _write(self, stored: JudgementsOfPairs) -> None:
        with replacing(self.path) as file:
            for _, judgement in sorted(stored.items()):
                fields = {**judgement._asdict(), "judged_at": judgement.judged_at.isoformat()}
                file.write(json.dumps(fields, ensure_ascii=True).encode() + b"\n")


def _record(stored: JudgementsOfPairs, judged: JudgedPair, replaces: VerdictName | None) -> bool:
    first, second, verdict, note, judge, confidence = judged[:6]
    hashes = judged[6] if len(judged) > 6 else None
    a, b = min(first, second), max(first, second)
    if note is not None and len(note.encode(errors="replace")) > _MOST_NOTE:
        raise InputError(f"the note is longer than {_MOST_NOTE:,} bytes")
    before = stored.get((a, b))
    # The settings of the run are not known here, and with them the words that count.
    hash_a, hash_b = (hashes if first == a else hashes[::-1]) if hashes else (None, None)
    stated = (verdict, note, judge, confidence, hash_a, hash_b)
    if before is not None and (before.verdict, before.note, *before[6:10]) == stated:
        return False
    if before is not None and before.verdict != replaces:
        raise JudgementExists(f"{before.judged_by} has judged the pair {before.verdict}")
    now = datetime.now(UTC)
    stored[a, b] = Judgement(
        a,
        b,
        verdict,  # type: ignore[arg-type]  # a Verdict is one of these texts, too
        getpass.getuser(),
        now,
        *stated[1:],
    )
    return True


def _judgement(values: dict[str, Any]) -> Judgement:
    a, b = sorted((values["a"], values["b"]))
    judged_at = datetime.fromisoformat(values["judged_at"])
    names = ("note", "source", "confidence", "hash_a", "hash_b")
    rest: Iterator[Any] = (values.get(name) for name in names)
    return Judgement(a, b, values["verdict"], str(values["judged_by"]), judged_at, *rest)


class Removed(NamedTuple):
    kept: int
    """The number of the record, from 1 on."""
    removed: int
    similarity: float


class _Report(NamedTuple):
    removed: list[Removed]
    keys: dict[int, str]
    """The keys by the numbers of records, as far as the report has them."""
    matches_of_corpus: int
    """The records that were removed because they match a document of a corpus."""


class ReportDocuments:
    """The clusters of a report, with the texts of the file; it is a Reviewed.

    The texts of the named records are copied to a temporary file: memory has their places only.
    """

    def __init__(
        self, report: str, records: RecordFiles, judgements: str, threshold: float | None = None
    ) -> None:
        """judgements: their file. Raises InputError for files that do not belong together."""
        self._records = records
        self._report = read_report(report)
        lowest = min((each.similarity for each in self._report.removed), default=1.0)
        self.threshold = math.floor(lowest * 100) / 100 if threshold is None else threshold
        self.incomplete_below: float | None = None
        self.unique_from: float | None = None
        self.guards: tuple[str, ...] = ()
        self.is_rebuilt = False
        self.name = Path(report).name
        self._names = _names(self._report)
        self.kept: Collection[str] = {self._names[each.kept] for each in self._report.removed}
        self.has_keys = self._names == self._report.keys
        """Whether each record has a key of its own, so that textsim dedupe can obey judgements."""
        self._spool = tempfile.TemporaryFile(prefix="textsim-")  # noqa: SIM115 - __exit__ closes it
        self._places: dict[str, tuple[int, int]] = {}
        self._scopes: dict[str, str | None] = {}
        try:
            self._count = self._copy_texts(report)
        except BaseException:
            self._spool.close()
            raise
        self.judgement_store = JudgementFile(judgements)
        facts = {"Input": Path(records.title).name, "Judgements": Path(judgements).name}
        if self._report.matches_of_corpus:
            facts["Removed for a corpus, not shown"] = f"{self._report.matches_of_corpus:,}"
        self.facts: Mapping[str, str] = facts

    def __enter__(self) -> ReportDocuments:
        return self

    def __exit__(self, *exception: object) -> None:
        self._spool.close()

    def count(self) -> int:
        return self._count

    def random_matches(self) -> None:
        """Return None: all pairs come at once."""
        return

    def pairs(self) -> Generator[Pair[str], None, None]:
        for kept, removed, similarity in self._report.removed:
            a, b = sorted((self._names[kept], self._names[removed]))
            yield Pair(a, b, similarity)

    def siblings(self) -> Generator[Pair[str], None, None]:
        """Yield nothing: a report has only documents that were taken for one."""
        yield from ()

    def guards_apart(self, pairs: list[Pair[str]]) -> list[GuardsApart]:
        return [{} for _ in pairs]

    def traits(self, keys: list[str]) -> dict[str, Traits]:
        return {key: Traits(None, self._scopes[key]) for key in keys if key in self._scopes}

    def texts(self, keys: list[str]) -> dict[str, ShownText]:
        return {key: self._text(*self._places[key]) for key in keys if key in self._places}

    def stored_clusters(self) -> None:
        """Return None: no cluster is tracked."""

    def inspect(self, keys: list[str]) -> Inspection | None:
        """Return None: a template shows in a corpus only."""
        return None

    def commands(self, threshold: float) -> list[NextCommand]:
        columns = self._records.columns
        words = ["textsim", "dedupe", *self._inputs(), "--threshold", f"{threshold:.2f}"]
        for option, value, default in (
            ("--text", columns.text, "text"),
            ("--key", columns.key, "id"),
            *(("--scope", name, None) for name in columns.scope),
        ):
            words += [] if value in (None, default) else [option, str(value)]
        purpose = "Remove the near-duplicates again"
        if self.has_keys:
            words += ["--judgements", self.judgement_store.path]
            purpose += ", and obey your judgements"
        effect = (
            "Choose it to replace the result of the earlier run. It reads the input again, and writes "
            "the records that stay to unique.jsonl. The input does not change."
        )
        return [NextCommand(purpose, shlex.join([*words, "-o", "unique.jsonl"]), effect)]

    def _inputs(self) -> list[str]:
        form = self._records.form._asdict().items()
        options = (
            word
            for (name, value), default in zip(form, BY_NAME, strict=True)
            if value != default
            for word in (f"--{name}", str(value))
        )
        return [*(file.name for file in self._records.files), *options]

    def _copy_texts(self, report: str) -> int:
        number = 0
        for number, record in enumerate(self._records, 1):
            name = self._names.get(number)
            if name is None:
                continue
            if record.text is None or self._report.keys.get(number) not in (None, record.key):
                raise InputError(
                    f"{shown(report)} is no report of {shown(self._records.title)}: record {number} "
                    "has another key, or no text"
                )
            data = record.text.encode("utf-8", "replace")
            self._places[name] = self._spool.tell(), len(data)
            self._scopes[name] = record.scope
            with in_temporary_folder():
                self._spool.write(data)
        if missing := [each for each in self._names if each > number]:
            raise InputError(
                f"{shown(report)} is no report of {shown(self._records.title)}: it names record "
                f"{min(missing)}, and the file has {number:,}"
            )
        with in_temporary_folder():
            self._spool.flush()
        return number

    def _text(self, start: int, size: int) -> ShownText:
        return ShownText(os.pread(self._spool.fileno(), size, start).decode(), True)


def read_report(path: str) -> _Report:
    """Read the report of textsim dedupe; raises InputError with the line of a faulty cluster."""
    report = _Report([], {}, 0)
    matches_of_corpus = 0
    for number, line in _lines(path):
        try:
            kept, removed = line["kept"], line["removed"]
            for each in removed:
                _add_key(report.keys, each)
                if "corpus" in kept:
                    matches_of_corpus += 1
                    continue
                pair = int(kept["record"]), int(each["record"])
                report.removed.append(Removed(*pair, float(each["similarity"])))
            if "corpus" not in kept:
                _add_key(report.keys, kept)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{shown(path)}, line {number} is no cluster of a report of textsim dedupe"
            ) from error
    named = {number for each in report.removed for number in each[:2]}
    keys = {number: key for number, key in report.keys.items() if number in named}
    return _Report(report.removed, keys, matches_of_corpus)


def _lines(path: str) -> Iterator[tuple[int, Any]]:
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield number, json.loads(line)
            except ValueError as error:
                raise InputError(f"{shown(path)}, line {number} is no JSON: {error}") from error


def _add_key(keys: dict[int, str], document: dict[str, Any]) -> None:
    if "key" in document:
        keys[int(document["record"])] = str(document["key"])


def _names(report: _Report) -> dict[int, str]:
    """Return the name of each record: its key if each record has a key of its own, or its number."""
    numbers = sorted({number for each in report.removed for number in each[:2]})
    keys = report.keys
    if len(keys) == len(numbers) == len(set(keys.values())):
        return keys
    return {number: f"record {number}" for number in numbers}
