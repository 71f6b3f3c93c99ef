"""The documents of a corpus or of one of its attached tables, for the pages."""

from __future__ import annotations

import random
import shlex
from collections.abc import Collection, Generator, Mapping
from contextlib import closing
from functools import partial
from typing import NamedTuple

import numpy as np

from textsim_db.base.run_ahead import cut
from textsim_db.compare.match_rule import Criterion
from textsim_db.corpus import Corpus
from textsim_db.db.binary_format import array
from textsim_db.db.store import Store
from textsim_db.errors import ConfigurationError
from textsim_db.files.arrow_frames import Results
from textsim_db.measures.by_name import JACCARD
from textsim_db.measures.word_diff import ShownText
from textsim_db.read import list_pairs, search, statements, stored_documents
from textsim_db.read.stored_documents import Traits, forms_of_rows
from textsim_db.results import Pair, Source
from textsim_db.results.rows import Inspection
from textsim_db.review.rendering import GuardsApart, NextCommand
from textsim_db.review.reviewed_clusters import StoredClusters
from textsim_db.sync import sources as attached_tables
from textsim_db.sync.read_source import shown_texts
from textsim_db.text.guard_lines import elements_apart
from textsim_db.text.storable import possible_key

DRAWN_DOCUMENTS = 200
"""The documents whose matches the first page shows; more take longer."""
_SEED = 1
_PAIRS_AT_ONCE = 10_000


class RandomMatches(NamedTuple):
    documents: int
    """The number of random documents that exist."""
    pairs: list[Pair[str]]
    """A pair for each match of each of these documents; it comes twice if both are among them."""


def random_matches(store: Store, criterion: Criterion, count: int, seed: int) -> RandomMatches:
    """Return the matches of at most this many random documents; it takes as many look-ups."""
    ((highest,),) = store.read(statements.HIGHEST_ID)
    ids = random.Random(seed).sample(range(1, highest + 1), min(count, highest))  # noqa: S311
    rows = store.read(statements.DOCUMENTS_OF_IDS, [array(np.array(ids, np.int32))], binary=True)
    parts = np.array([row[5] for row in rows], np.int64) if store.corpus.config.scoped else None
    matches_of_rows = search.query_forms(store, forms_of_rows(store, rows), criterion, parts)
    pairs = [
        Pair(min(row[1], match.key), max(row[1], match.key), match.similarity)
        for row, matches in zip(rows, matches_of_rows, strict=True)
        for match in matches
        if match.key != row[1]
    ]
    return RandomMatches(len(rows), pairs)


class CorpusDocuments:
    """The documents of a corpus or of one attached table; it is a Reviewed, as ReportDocuments is."""

    def __init__(
        self, corpus: Corpus, threshold: float | None = None, source: Source | None = None
    ) -> None:
        """source: only the pairs of this table count."""
        self._corpus = corpus
        self._first_id = self._store.corpus.id
        self.judgement_store = corpus
        # Raises an error for a threshold out of range.
        criterion = corpus._criterion(JACCARD.name, threshold, None)
        self._criterion = criterion._replace(for_merges=True)
        self._pairs = Results(Pair, partial(corpus._pairs, list_pairs.pairs, self._criterion))
        self._source = source
        self._source_id = (
            None if source is None else attached_tables.id_of(self._store, source.table)
        )
        config = corpus.config
        self.name = corpus.name if source is None else f"{source.table} in {corpus.name}"
        self.threshold = config.threshold
        """The threshold that is in use."""
        self.unique_from = config.unique_from
        """The similarity below which a match is doubtful; None if no match is."""
        self.guards = config.guards
        is_lower = threshold is not None and threshold < config.threshold
        self.incomplete_below = config.threshold if is_lower else None
        """Below this similarity only a part of the pairs is found; None if all pairs are found."""
        facts = {"Shingle": str(config.shingle)}
        if config.guards:
            facts["Guards, whose siblings have a list of their own"] = ", ".join(config.guards)
        self.facts: Mapping[str, str] = facts
        """Other facts for the overview, by title."""
        self.kept: Collection[str] = ()
        """The keys that a finished dedupe kept: each represents its cluster."""

    @property
    def is_rebuilt(self) -> bool:
        """Whether the corpus was rebuilt after this review began, as of the last read."""
        return self._store.corpus.id != self._first_id

    @property
    def _store(self) -> Store:
        return self._corpus._current.store

    def count(self) -> int:
        if self._source_id is None:
            return len(self._corpus)
        return self._corpus._current.call(attached_tables.count_documents, self._source_id)[0]

    def random_matches(self) -> RandomMatches | None:
        """Return the matches of some documents; None for a table, which may have few of them."""
        if self._source_id is not None:
            return None
        return self._corpus._current.search(random_matches, self._criterion, DRAWN_DOCUMENTS, _SEED)

    def pairs(self) -> Generator[Pair[str], None, None]:
        with closing(self._pairs) as pairs:
            for batch in cut(pairs, _PAIRS_AT_ONCE, lambda _: 0):
                yield from self._of_source(batch)

    def siblings(self) -> Generator[Pair[str], None, None]:
        """Yield the matches that a guard keeps from being merged."""
        criterion = self._criterion._replace(for_merges=False)
        with closing(
            Results(Pair, partial(self._corpus._pairs, list_pairs.pairs, criterion))
        ) as pairs:
            for batch in cut(pairs, _PAIRS_AT_ONCE, lambda _: 0):
                own = self._of_source(batch)
                traits = self.traits(sorted({key for pair in own for key in pair[:2]}))
                guards = {key: each.guard for key, each in traits.items()}
                stored = (pair for pair in own if pair.a in guards and pair.b in guards)
                yield from (pair for pair in stored if guards[pair.a] != guards[pair.b])

    def guards_apart(self, pairs: list[Pair[str]]) -> list[GuardsApart]:
        """Return for each pair the guards that keep it apart, and what each document alone has."""
        if not self.guards:
            return [{} for _ in pairs]
        keys = sorted({key for pair in pairs for key in pair[:2]})
        forms = self._corpus._current.loaded().call(stored_documents.forms, keys)
        words = {key: form.split() for key, form in forms.items()}
        rules = self._corpus.config.guard_rules
        return [elements_apart(words.get(a, []), words.get(b, []), rules) for a, b, _ in pairs]

    def _of_source(self, pairs: list[Pair[str]]) -> list[Pair[str]]:
        if self._source_id is None:
            return pairs
        traits = self.traits(sorted({key for pair in pairs for key in pair[:2]}))
        own = {key for key, each in traits.items() if each.source_id == self._source_id}
        return [pair for pair in pairs if pair.a in own and pair.b in own]

    def traits(self, keys: list[str]) -> dict[str, Traits]:
        return self._corpus._current.call(stored_documents.traits, _possible(keys))

    def texts(self, keys: list[str]) -> dict[str, ShownText]:
        """Return the texts of the documents that exist: those of attached tables in the original."""
        return self._corpus._current.call(shown_texts, _possible(keys))

    def stored_clusters(self) -> StoredClusters | None:
        """Return the stored clusters; None for a table, whose clusters may have other documents."""
        linkage = self._corpus.status().linkage
        if linkage is None or self._source_id is not None:
            return None
        return StoredClusters(self._corpus, linkage)

    def inspect(self, keys: list[str]) -> Inspection | None:
        from textsim_db.read.list_clusters import inspect_keys

        threshold = self._corpus.config.threshold
        return self._corpus._current.search(inspect_keys, keys, threshold)

    def commands(self, threshold: float) -> list[NextCommand]:
        name, number = shlex.quote(self._corpus.name), f"{threshold:.2f}"
        commands = [
            NextCommand(
                "Build the corpus anew with this threshold",
                f"textsim rebuild {name} --threshold {number}",
                "Choose it if all searches and clusters are to use this threshold. It replaces the "
                "index; searches go on meanwhile, and documents and judgements stay.",
            ),
            NextCommand(
                f"Keep the threshold of the corpus, {self.threshold:g}, and list clusters at this one",
                f"textsim clusters {name} --threshold {number} --judgements",
                "Choose it to see the result first. It changes nothing: it prints the clusters that "
                "this threshold and the judgements make.",
            ),
        ]
        if self._source is None:
            return commands
        corpus = "'" + self._corpus.name.replace("'", "''") + "'"
        statement = (
            f"CREATE TABLE duplicate AS SELECT * FROM textsim.duplicates({corpus}, "
            f"threshold => {number}, judgements => true);"
        )
        purpose = "List the rows of this table to remove, in psql"
        effect = (
            "Choose it to delete or hide rows in SQL. It creates the table duplicate with the keys to "
            "remove, and deletes nothing."
        )
        return [NextCommand(purpose, statement, effect), *commands]


def _possible(keys: list[str]) -> list[str]:
    """Return the keys that a document can have; the address of a page may name any."""
    return [key for key in keys if possible_key(key) is not None]


def attached_source(sources: list[Source], table: str, corpus: str | None) -> Source:
    """Return the attached table with a name, of a corpus if that is given; raises ConfigurationError."""
    own = [each for each in sources if corpus in (None, each.corpus)]
    named = [each for each in own if table in (each.table, each.table.replace('"', ""))]
    if len(named) == 1:
        return named[0]
    if named:
        names = ", ".join(f'"{each.corpus}"' for each in named)
        raise ConfigurationError(f"table {table} is attached to {names}; name the corpus, too")
    place = "" if corpus is None else f' to the corpus "{corpus}"'
    tables = ", ".join(sorted({each.table for each in own})) or "none"
    raise ConfigurationError(f"table {table} is not attached{place}; attached tables: {tables}")
