"""Finds the documents to remove so that one document of each cluster stays, by a temporary corpus.

A document that matches a given corpus is removed before.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from textsim_db.cluster.keep_rule import Preference
from textsim_db.compare.match_rule import Criterion
from textsim_db.db import stored_corpus
from textsim_db.errors import CorpusNotFound, DocumentError, InputError, shown
from textsim_db.files.records import replacing
from textsim_db.measures.by_name import JACCARD
from textsim_db.read import search
from textsim_db.results import AddReport, Match
from textsim_db.settings.corpus_settings import CorpusConfig, CorpusSettings, Linkage
from textsim_db.text.left_out_words import with_lists
from textsim_db.text.run_ahead import cut
from textsim_db.write.temporary_corpora import temporary_name

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.corpus.database import Database


log = logging.getLogger(__name__)


LOOKED_UP_AT_ONCE = 4_000
"""The documents that are looked up at once."""

KeyedText = tuple[str, str, str | None]
"""A document as (key, text, scope)."""


class Standing(NamedTuple):
    """A document of a corpus that stands in the way of a new document."""

    corpus: str
    key: str
    similarity: float
    """The similarity of the two documents."""


class AgainstCorpora:
    """An iterable of the documents that match no document of some corpora."""

    def __init__(self, documents: Iterable[KeyedText], corpora: Sequence[Corpus]) -> None:
        self.standing: dict[str, Standing] = {}
        """For each key that was left out, its best match in the first corpus that has one."""
        self._documents = documents
        self._corpora = corpora

    def __iter__(self) -> Iterator[KeyedText]:
        for batch in cut(self._documents, LOOKED_UP_AT_ONCE, lambda each: len(each[1])):
            for corpus in self._corpora:
                self._look_up(corpus, [each for each in batch if each[0] not in self.standing])
            yield from (each for each in batch if each[0] not in self.standing)

    def _look_up(self, corpus: Corpus, batch: list[KeyedText]) -> None:
        for (key, _, _), matches in zip(batch, _matches(corpus, batch), strict=True):
            if matches:
                best = matches[0]
                self.standing[key] = Standing(corpus.name, best.key, best.similarity)


def _matches(corpus: Corpus, batch: list[KeyedText]) -> list[list[Match]]:
    """Return the documents that each document merges with, best first; none for a refused one."""
    if not batch:
        return []
    scopes = [str(scope) for _, _, scope in batch] if corpus.config.scoped else None
    texts, parts = [text for _, text, _ in batch], corpus._parts(scopes, len(batch))
    criterion = Criterion(JACCARD, corpus.config.threshold, for_merges=True)
    try:
        return corpus._current.search(search.query_many, texts, criterion, parts)
    except DocumentError:
        if len(batch) == 1:
            return [[]]
        middle = len(batch) // 2
        return _matches(corpus, batch[:middle]) + _matches(corpus, batch[middle:])


LARGE = 1_000
"""A cluster of as many documents is worth a warning."""
MOST_WARNINGS = 5


class Rule(NamedTuple):
    """Decides which documents are near-duplicates, and which document of a cluster stays."""

    preference: Preference
    """Decides which document of a cluster stays."""
    settings: CorpusSettings
    """Decide which documents are near-duplicates."""
    linkage: str = Linkage.KEPT
    """Decides which documents make a cluster."""

    def against(self, corpora: Sequence[Corpus]) -> Rule:
        """Return this rule with the settings of the first corpus, if there is one.

        Raises ConfigurationError if only the documents, or only a corpus, have scopes.
        """
        for corpus in corpora:
            corpus.config.check_scope(corpus.name, self.settings.scoped)
        if not corpora:
            return self
        settings = replace(corpora[0].config, is_unique=False, unique_from=None, keep_for=None)
        return self._replace(settings=settings)


class Document(NamedTuple):
    """A document to compare with all others, or with the others of its scope."""

    text: str | None
    """None if it cannot be compared."""
    value: Any = None
    """The value of the preference's column."""
    scope: str | None = None
    """None if the settings know no scopes."""


class JudgedDocuments(NamedTuple):
    """A judgement of two documents."""

    a: int
    """The place of one document among all, from 0 on; a higher number if it is none of them."""
    b: int
    """The same of the other document."""
    verdict: str
    place: str
    """The file and the line of the judgement, for messages."""


class Removal(NamedTuple):
    """A document to remove."""

    number: int
    """Its place among all documents, from 0 on."""
    kept: int
    """The place of the document that is kept in its stead."""
    similarity: float
    """The similarity of the two documents."""


@dataclass(frozen=True, slots=True)
class Deduplication:
    """The result: the documents to remove, and the refused documents."""

    documents: int
    """The number of all documents."""
    removals: list[Removal]
    refused: list[tuple[int, str]]
    """The place of each document that cannot be compared, with the reason. It stays."""
    without_words: int
    """The documents without words. They match nothing, so they stay."""
    standing: dict[int, Standing]
    """The place of each document that is removed because a corpus has one that matches it."""

    def mask(self) -> npt.NDArray[np.bool_]:
        """Return which documents stay: bool of shape (documents,)."""
        stays = np.ones(self.documents, np.bool_)
        stays[[*self.standing, *(removal.number for removal in self.removals)]] = False
        return stays

    def clusters(self) -> list[list[Removal]]:
        """Return the removals grouped by the kept document, in the order of its number."""
        by_kept: dict[int, list[Removal]] = {}
        for removal in sorted(self.removals):
            by_kept.setdefault(removal.kept, []).append(removal)
        return [by_kept[kept] for kept in sorted(by_kept)]


def deduplicate(
    database: Database,
    documents: Iterable[Document],
    rule: Rule,
    progress: Callable[[AddReport], None] | None = None,
    against: Sequence[Corpus] = (),
    judgements: Callable[[], list[JudgedDocuments]] | None = None,
) -> Deduplication:
    """Find the documents to remove; documents are numbered from 0.

    progress is called as by Corpus.add_many. against: corpora whose documents stand; a document that
    matches one of them is removed, and not compared with the others. judgements: called after the
    documents were read. Raises ConfigurationError if two values cannot be compared.
    """
    numbered = _Numbered(documents, with_values=rule.preference.column is not None)
    new = AgainstCorpora(numbered, against)
    with temporary_corpus(database, rule.settings) as corpus:
        report = corpus.add_many(new if against else numbered, progress)
        lengths = np.array(numbered.lengths, np.int64)
        ranks = rule.preference.ranks(lengths, numbered.values).tolist()
        if judgements is not None:
            judged = judgements()
            corpus.judge_many(
                [(_key(j.a), _key(j.b), j.verdict) for j in judged],
                place_of=lambda i: judged[i].place,
            )
        duplicates = corpus.duplicates(
            linkage=rule.linkage,
            rank=lambda key: ranks[int(key)],
            judgements=judgements is not None,
        )
        removals = [Removal(int(d.key), int(d.kept), d.similarity) for d in duplicates]
        _warn_of_large_clusters(corpus, removals)
    refused = [(int(refusal.key), refusal.reason) for refusal in report.refused]
    standing = {int(key): document for key, document in new.standing.items()}
    return Deduplication(len(lengths), removals, refused, report.without_words, standing)


def _warn_of_large_clusters(corpus: Corpus, removals: list[Removal]) -> None:
    """Log what holds each cluster of LARGE documents or more together."""
    sizes = Counter(removal.kept for removal in removals)
    for kept, removed in sizes.most_common(MOST_WARNINGS):
        if removed + 1 < LARGE:
            return
        members = [kept, *(removal.number for removal in removals if removal.kept == kept)]
        (inspection,) = corpus.inspect_keys([map(_key, members)])
        cause = "no template was found"
        if inspection.held_by_template:
            cause = (
                f'a template holds them together, such as "{inspection.template[0]}"; leave it out: '
                "index the documents, and run textsim rebuild with --boilerplate"
            )
        log.warning(
            "%s documents are removed for the document in place %s; the least similarity of those "
            "compared is %.4f, and %s",
            f"{removed:,}",
            kept + 1,
            inspection.least,
            cause,
            extra={"documents": removed, "least": inspection.least},
        )


def _key(number: int) -> str:
    """Return the key of a document in the temporary corpus: their order is that of the numbers."""
    return f"{number:012d}"


class _Numbered:
    """Documents with their numbers as keys; records lengths and values while they are read."""

    def __init__(self, documents: Iterable[Document], with_values: bool) -> None:
        self.lengths: list[int] = []
        self.values: list[Any] = []
        self._documents = documents
        self._with_values = with_values

    def __iter__(self) -> Iterator[tuple[str, str, str | None]]:
        for number, (text, value, scope) in enumerate(self._documents):
            self.lengths.append(0 if text is None else len(text))
            if self._with_values:
                self.values.append(value)
            if text is not None:
                yield _key(number), text, scope


@contextmanager
def temporary_corpus(database: Database, settings: CorpusSettings) -> Iterator[Corpus]:
    """Lend a new corpus, and drop it afterwards."""
    with temporary_name(database.engine) as name:
        try:
            config = (
                settings if isinstance(settings, CorpusConfig) else with_lists(settings).complete()
            )
            stored_corpus.create(database.engine, name, config)
            yield database.corpus(name)
        finally:
            with suppress(CorpusNotFound):
                stored_corpus.drop_named(database.engine, name)


class AdditionFile:
    """The file with the result of the last run that added documents."""

    def __init__(self, path: str, inputs: Sequence[str], arguments: Sequence[object]) -> None:
        """Name the file and the run, which depends on the content of the inputs and on the arguments."""
        self.path = path
        self._run = _digest(inputs, arguments)

    def read(self) -> Deduplication | None:
        """Return the result of an earlier run with the same records and arguments, None without one.

        Raises InputError if the earlier run had others.
        """
        try:
            with open(self.path, "rb") as file:
                content = json.load(file)
        except FileNotFoundError:
            return None
        if content["run"] != self._run:
            raise InputError(
                f"{shown(self.path)} is of a run with other records or options, whose output would be "
                "lost; choose another output, or remove that file"
            )
        return Deduplication(
            documents=content["documents"],
            removals=[Removal(*removal) for removal in content["removals"]],
            refused=[(number, reason) for number, reason in content["refused"]],
            without_words=content["without_words"],
            standing={int(number): Standing(*s) for number, s in content["standing"].items()},
        )

    def write(self, result: Deduplication) -> None:
        """Write the result, whole or not at all."""
        content = {
            "run": self._run,
            "documents": result.documents,
            "removals": result.removals,
            "refused": result.refused,
            "without_words": result.without_words,
            "standing": result.standing,
        }
        with replacing(self.path) as file:
            file.write(json.dumps(content).encode())


def _digest(paths: Sequence[str], arguments: Sequence[object]) -> str:
    digest = hashlib.sha256(json.dumps(arguments).encode())
    for path in paths:
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
