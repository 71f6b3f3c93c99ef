"""Checks after a crash, and the faults that they have found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import textsim_db as ts
from tests.crash.works import Changes, text_of
from tests.support.connections import Connection, value
from tests.support.tracked import compare
from textsim_db.db import stored_corpus
from textsim_db.write.temporary_corpora import PREFIX

Texts = Mapping[str, str]


@dataclass
class Findings:
    """Numbers of kills, committed transactions, documents and faults, and descriptions of problems."""

    kills: Counter[str] = field(default_factory=Counter)
    transactions: int = 0
    documents: int = 0
    in_doubt: int = 0
    lost: int = 0
    duplicated: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def faults(self) -> int:
        return self.lost + self.duplicated + len(self.problems)


class Model:
    """The version of each document that is committed, according to the journals."""

    def __init__(self) -> None:
        self.versions: dict[str, int] = {}

    @property
    def texts(self) -> dict[str, str]:
        return {key: text_of(key, version) for key, version in self.versions.items()}

    def apply(self, changes: Changes) -> None:
        for key, version in changes.items():
            if version is None:
                self.versions.pop(key, None)
            else:
                self.versions[key] = version

    def resolve_doubt(self, changes: Changes, texts: Texts, findings: Findings) -> None:
        """Decide whether a transaction in doubt was committed; a part of it alone is a fault."""
        findings.in_doubt += 1
        before = {key: self.versions.get(key) for key in changes}
        if self._holds(before, texts):
            return
        self.apply(changes)
        if not self._holds(changes, texts):
            part = f"a part of a transaction was committed, of {len(changes)} keys"
            findings.problems.append(part)

    @staticmethod
    def _holds(changes: Changes, texts: Texts) -> bool:
        return all(
            texts.get(key) == (None if version is None else text_of(key, version))
            for key, version in changes.items()
        )


def documents(connection: Connection, corpus: str) -> list[tuple[str, str]]:
    """Return key and normal form of every stored document, without using an index."""
    corpus_id = value(connection, "SELECT id FROM textsim.corpus WHERE name = %s", [corpus])
    query = f"SELECT key, word_ids, normal_form FROM textsim.document_{corpus_id}"
    rows = connection.execute(query.encode()).fetchall()
    # Words are read after the documents: a worker may be giving documents new words.
    words = dict(connection.execute(f"SELECT id, word FROM textsim.word_{corpus_id}".encode()))

    def form_of(ids: list[int], form: str | None) -> str:
        return " ".join(words.get(i, "?") for i in ids) if form is None else form

    return [(key, form_of(ids, form)) for key, ids, form in rows]


def check_contents(
    contents: Iterable[tuple[str, str]], expected: Texts, findings: Findings
) -> None:
    """Compare the stored documents with the committed ones."""
    rows = list(contents)
    stored = dict(rows)
    findings.duplicated += len(rows) - len(stored)
    findings.lost += sum(stored.get(key) != text for key, text in expected.items())
    if uncommitted := stored.keys() - expected.keys():
        findings.problems.append(
            f"{len(uncommitted)} documents that were never committed, such as {min(uncommitted)}"
        )


def check_corpus(corpus: ts.Corpus, findings: Findings) -> None:
    """Check the integrity of a corpus; extra band rows count as duplicates."""
    for problem in corpus.check():
        if problem.kind == "extra band row":
            findings.duplicated += 1
        else:
            findings.problems.append(f"check: {problem}")


def check_clusters(connection: Connection, corpus: ts.Corpus, findings: Findings) -> None:
    """Compare tracked clusters with clusters(), and replay their events."""
    try:
        clusters = compare(connection, corpus, corpus.config.threshold)
    except AssertionError as error:
        findings.problems.append(f"the clusters of {corpus.name} differ: {error}")
    else:
        if not clusters:
            findings.problems.append(f"corpus {corpus.name} has no cluster to compare")


def check_searches(corpus: ts.Corpus, expected: Texts, findings: Findings) -> None:
    """Search for some documents by the index."""
    for key, text in list(expected.items())[:: max(1, len(expected) // 10)]:
        if key not in [match.key for match in corpus.query(text, 1.0)]:
            findings.problems.append(f"{key} is stored, but a search does not find it")


def check_leftovers(db: ts.Database, connection: Connection, findings: Findings) -> None:
    """Find leftovers of the killed processes, after the work was completed."""
    temporary = [name for name in stored_corpus.names(db.engine) if name.startswith(PREFIX)]
    if temporary:
        findings.problems.append(f"{len(temporary)} temporary corpora are left")
    rows = connection.execute("""
        SELECT c.relname FROM pg_class c
        WHERE c.relnamespace = 'textsim'::regnamespace AND c.relkind = 'r'
            AND c.relname ~ '^(document|band)_[0-9]+$'
            AND NOT EXISTS (
                SELECT FROM textsim.corpus k WHERE k.id::text = substring(c.relname, '[0-9]+$'))
    """)
    findings.problems += [f"{name} is of no corpus" for (name,) in rows]
    rows = connection.execute(r"""
        SELECT p.proname FROM pg_proc p
        WHERE p.pronamespace = 'textsim'::regnamespace AND p.proname ~ '^_(candidates|write)_\d+$'
            AND NOT EXISTS (
                SELECT FROM textsim.corpus k WHERE k.id::text = substring(p.proname, '[0-9]+$'))
    """)
    findings.problems += [f"{name} is of no corpus" for (name,) in rows]
    rows = connection.execute("""
        SELECT k.name FROM textsim.corpus k
        WHERE NOT EXISTS (
            SELECT FROM pg_index i
            WHERE i.indexrelid = to_regclass(format('textsim.band_%s_bucket', k.id))
                AND i.indisvalid)
    """)
    findings.problems += [f"corpus {name} has no index on its band rows" for (name,) in rows]
    rows = connection.execute("SELECT id, lease_until, tries, error FROM textsim.pending")
    findings.problems += [f"still pending: {row}" for row in rows]
    rows = connection.execute("SELECT gid FROM pg_prepared_xacts")
    findings.problems += [f"the prepared transaction {gid} is left" for (gid,) in rows]
