"""What must hold after a crash, and how often it did not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import textsim_db as ts
from tests.crash.works import Changes, text_of
from tests.support.connections import Connection
from textsim_db.db import stored_corpus
from textsim_db.write.temporary_corpora import PREFIX

Texts = Mapping[str, str]


@dataclass
class Tally:
    """What was found: committed transactions and documents, and what is wrong."""

    kills: Counter[str] = field(default_factory=Counter)
    transactions: int = 0
    documents: int = 0
    doubtful: int = 0
    lost: int = 0
    duplicated: int = 0
    broken: list[str] = field(default_factory=list)

    @property
    def faults(self) -> int:
        return self.lost + self.duplicated + len(self.broken)


class Model:
    """What was committed, as far as the journals say so."""

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

    def settle(self, changes: Changes, texts: Texts, tally: Tally) -> None:
        """Find out whether a transaction in doubt was committed; a part of it must not have been."""
        tally.doubtful += 1
        before = {key: self.versions.get(key) for key in changes}
        if self._holds(before, texts):
            return
        self.apply(changes)
        if not self._holds(changes, texts):
            tally.broken.append(f"a part of a transaction was committed, of {len(changes)} keys")

    @staticmethod
    def _holds(changes: Changes, texts: Texts) -> bool:
        return all(
            texts.get(key) == (None if version is None else text_of(key, version))
            for key, version in changes.items()
        )


def documents(connection: Connection, corpus: str) -> list[tuple[str, str]]:
    """Return key and normal form of every stored document, read without any index."""
    (number,) = connection.execute(
        "SELECT id FROM textsim.corpus WHERE name = %s", [corpus]
    ).fetchall()[0]
    rows = connection.execute(
        f"SELECT key, word_ids, normal_form FROM textsim.document_{number}".encode()
    ).fetchall()
    # After the documents, to which a worker may just be giving new words.
    words = dict(connection.execute("SELECT id, word FROM textsim.word").fetchall())
    return [
        (key, " ".join(words.get(i, "?") for i in ids) if form is None else form)
        for key, ids, form in rows
    ]


def check_contents(contents: Iterable[tuple[str, str]], expected: Texts, tally: Tally) -> None:
    """Compare what is stored with what was committed."""
    rows = list(contents)
    stored = dict(rows)
    tally.duplicated += len(rows) - len(stored)
    tally.lost += sum(stored.get(key) != text for key, text in expected.items())
    if never := stored.keys() - expected.keys():
        tally.broken.append(f"{len(never)} documents that nobody committed, such as {min(never)}")


def check_corpus(corpus: ts.Corpus, tally: Tally) -> None:
    """Check all invariants, band rows included."""
    for problem in corpus.check():
        if problem.kind == "extra band row":
            tally.duplicated += 1
        else:
            tally.broken.append(f"check: {problem}")


def check_found(corpus: ts.Corpus, expected: Texts, tally: Tally) -> None:
    """Look for some documents by the index."""
    for key, text in list(expected.items())[:: max(1, len(expected) // 10)]:
        if key not in [match.key for match in corpus.query(text, 1.0)]:
            tally.broken.append(f"{key} is stored, and not found")


def check_leftovers(db: ts.Database, connection: Connection, tally: Tally) -> None:
    """See that nothing is left of what was killed, once the work was done again."""
    temporary = [name for name in stored_corpus.names(db.engine) if name.startswith(PREFIX)]
    if temporary:
        tally.broken.append(f"{len(temporary)} temporary corpora are left")
    found = connection.execute("""
        SELECT c.relname FROM pg_class c
        WHERE c.relnamespace = 'textsim'::regnamespace AND c.relkind = 'r'
            AND c.relname ~ '^(document|band)_[0-9]+$'
            AND NOT EXISTS (
                SELECT FROM textsim.corpus k WHERE k.id::text = substring(c.relname, '[0-9]+$'))
    """)
    tally.broken += [f"{name} is of no corpus" for (name,) in found]
    found = connection.execute(r"""
        SELECT p.proname FROM pg_proc p
        WHERE p.pronamespace = 'textsim'::regnamespace AND p.proname ~ '^_(search|write|remove)_\d+$'
            AND NOT EXISTS (
                SELECT FROM textsim.corpus k WHERE k.id::text = substring(p.proname, '[0-9]+$'))
    """)
    tally.broken += [f"{name} is of no corpus" for (name,) in found]
    found = connection.execute("""
        SELECT k.name FROM textsim.corpus k
        WHERE NOT EXISTS (
            SELECT FROM pg_index i
            WHERE i.indexrelid = to_regclass(format('textsim.band_%s_bucket', k.id))
                AND i.indisvalid)
    """)
    tally.broken += [f"corpus {name} has no index on its band rows" for (name,) in found]
    found = connection.execute("SELECT id, lease_until, tries, error FROM textsim.pending")
    tally.broken += [f"still pending: {row}" for row in found]
    found = connection.execute("SELECT gid FROM pg_prepared_xacts")
    tally.broken += [f"a prepared transaction {gid}" for (gid,) in found]
