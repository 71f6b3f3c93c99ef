"""Random changes of a tracked corpus, and its clusters compared with those of all documents."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from itertools import combinations
from typing import Any

import textsim_db as ts
from tests.support.connections import Connection, tables_of, value
from tests.support.judgements import expected_clusters, judged_groups
from textsim_db.settings.named_values import Verdict

CORPORA: dict[str, dict[str, Any]] = {
    "bands": {"shingle": "word:1", "threshold": 0.5, "recall": 0.9},
    "exact": {"shingle": "word:2", "threshold": 0.4, "recall": 1.0},
    "chars": {"shingle": "char:2", "threshold": 0.7, "recall": 0.8},
    "scopes": {"shingle": "word:1", "threshold": 0.5, "recall": 0.9, "scoped": True},
    "guards": {"shingle": "word:1", "threshold": 0.5, "recall": 0.9, "guards": "words"}
    | {"guard_words": [f"w{number}" for number in range(0, 200, 5)]},
}
Groups = dict[int, tuple[int, frozenset[int]]]
"""By the id of a cluster: its representative and its members, as ids of documents."""


def ids_of(connection: Connection, corpus: ts.Corpus) -> dict[str, int]:
    """Return the ids of the documents, which follow the order in which they were added."""
    documents, _ = tables_of(connection, corpus.name)
    return dict(connection.execute(f"SELECT key, id FROM {documents}").fetchall())


def guards_of(connection: Connection, corpus: ts.Corpus) -> dict[str, int | None]:
    """Return the stored guard of each document."""
    documents, _ = tables_of(connection, corpus.name)
    return dict(connection.execute(f"SELECT key, guard FROM {documents}").fetchall())


def compare(
    connection: Connection, corpus: ts.Corpus, threshold: float, events: bool = True
) -> Groups:
    """Compare matches, clusters and events with the documents, and return the clusters."""
    ids = ids_of(connection, corpus)
    judged, guards = judged_pairs(corpus), guards_of(connection, corpus)
    pairs = {
        (a, b): similarity
        for a, b, similarity in corpus.pairs(threshold)
        if (a, b) not in judged and guards[a] == guards[b]
    }
    matches = "SELECT a, b, similarity FROM textsim._match_pairs(%s)"
    found = connection.execute(matches, [corpus.name]).fetchall()
    assert {(a, b): similarity for a, b, similarity in found} == pairs
    assert len(found) == len(pairs)
    clusters = corpus.clusters(threshold, linkage="kept", rank=ids.__getitem__, judgements=True)
    expected = {ids[c.kept or ""]: {ids[key] for key in c.keys} for c in clusters}
    members: dict[int, set[int]] = defaultdict(set)
    representatives: dict[int, int] = {}
    query = "SELECT key, cluster, representative, similarity FROM textsim.members(%s)"
    for key, cluster, representative, similarity in connection.execute(query, [corpus.name]):
        members[cluster].add(ids[key])
        representatives[cluster] = ids[representative]
        pair = min(key, representative), max(key, representative)
        assert similarity == (1 if key == representative else pairs.get(pair)), pair
    assert {representatives[cluster]: members[cluster] for cluster in members} == expected
    assert len(representatives) == len(expected)
    if events:
        compare_events(connection, corpus, members)
    return {cluster: (representatives[cluster], frozenset(members[cluster])) for cluster in members}


def compare_with_networkx(connection: Connection, corpus: ts.Corpus, threshold: float) -> None:
    """Compare the members with the clusters that the plain definition makes of the matches."""
    documents, _ = tables_of(connection, corpus.name)
    rows = connection.execute(f"SELECT key, scope FROM {documents} ORDER BY id").fetchall()
    scopes = dict(rows)
    guards = guards_of(connection, corpus)
    expected = expected_clusters(
        scopes,
        {(a, b): value for a, b, value in corpus.pairs(threshold) if guards[a] == guards[b]},
        {(j.a, j.b): str(j.verdict) for j in corpus.judgements() if not j.is_stale},
        "kept",
        list(scopes),
    )
    members: dict[int, list[str]] = defaultdict(list)
    for member in corpus.members():
        members[member.cluster].append(member.key)
    assert sorted(map(sorted, members.values())) == sorted(list(c.keys) for c in expected)


def judged_pairs(corpus: ts.Corpus) -> set[tuple[str, str]]:
    """Return the pairs that were judged different, and those of groups that were judged the same."""
    verdicts = {(j.a, j.b): str(j.verdict) for j in corpus.judgements() if not j.is_stale}
    different = {pair for pair, verdict in verdicts.items() if verdict == "different"}
    groups, _ = judged_groups(verdicts)
    return different.union(*(combinations(sorted(group), 2) for group in groups))


def compare_events(
    connection: Connection, corpus: ts.Corpus, clusters: dict[int, set[int]]
) -> None:
    """Replay the events: they give the same members, and no id of a cluster is used twice."""
    corpus_id = value(connection, "SELECT id FROM textsim.corpus WHERE name = %s", [corpus.name])
    members: dict[int, set[int]] = {}
    ended: dict[int, int | None] = {}
    columns = "what, cluster, document_id, other"
    query = f"SELECT {columns} FROM textsim.cluster_event_{corpus_id} ORDER BY id"
    for what, cluster, document, other in connection.execute(query):
        if what == "created":
            assert cluster not in members
            assert cluster not in ended
            members[cluster] = set()
        elif what == "joined":
            if other is not None:
                members[other].remove(document)
            members[cluster].add(document)
        elif what == "left":
            members[cluster].remove(document)
        elif what == "merged":
            members[other] |= members.pop(cluster)
            ended[cluster] = other
        elif what == "ended":
            assert not members.pop(cluster)
            ended[cluster] = None
        else:
            assert what == "split"
            assert cluster in members
            assert other in members
    assert members == clusters
    sizes = dict(connection.execute(f"SELECT id, size FROM textsim.cluster_{corpus_id}").fetchall())
    assert sizes == {cluster: len(documents) for cluster, documents in clusters.items()}
    aliases = dict(connection.execute(f"SELECT old, new FROM textsim.cluster_alias_{corpus_id}"))
    for old, new in ended.items():
        last = new
        while last is not None and ended.get(last) is not None:
            last = ended[last]
        assert aliases.get(old) == last


def expected_ids(before: Groups, after: Groups) -> dict[int, int]:
    """Return which clusters keep an id of before, by their representatives.

    The heir of an old cluster is the cluster with its representative, or else with most of its members;
    ties go to the cluster whose representative was added first. A cluster keeps the id of the largest
    of those whose heir it is; ties go to the lowest id.
    """
    root_of = {document: root for root, documents in after.values() for document in documents}
    candidates: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for id_, (representative, documents) in before.items():
        counts = Counter(root_of[document] for document in documents if document in root_of)
        if counts:
            largest = min(counts, key=lambda root: (-counts[root], root))
            heir = root_of.get(representative, largest)
            candidates[heir].append((-len(documents), id_))
    return {root: min(ids)[1] for root, ids in candidates.items()}


class RandomWriter:
    """Makes random changes of a corpus, in all the ways in which documents are written."""

    def __init__(
        self,
        connection: Connection,
        corpus: ts.Corpus,
        rng: random.Random,
        judges: bool = False,
        keys: int = 60,
    ) -> None:
        self._connection = connection
        self._corpus = corpus
        self._rng = rng
        self._texts: list[str] = []
        self._is_scoped = corpus.config.scoped
        self._judges = judges
        self._keys = keys

    def change(self) -> None:
        """Add, replace or remove some documents, or judge some pairs."""
        rng = self._rng
        if self._judges and rng.random() < 0.3:
            self._judge()
            return
        count = rng.choice((1, 1, 1, 2, 5, 15))
        keys = [f"k{number}" for number in rng.sample(range(self._keys), count)]
        way = rng.random()
        if way < 0.3:
            self._corpus.remove(keys)
        elif way < 0.6:
            self._corpus.add_many(self._document(key) for key in keys)
        else:
            for key in keys:
                _, text, *scope = self._document(key)
                values = [self._corpus.name, key, text, *(scope or [None])]
                self._connection.execute("SELECT textsim.add(%s, %s, %s, %s)", values)
            if way < 0.8:
                # As index_pending does, which would update clusters too.
                arguments = [self._corpus.name, keys]
                self._connection.execute("SELECT textsim._add_words(%s, %s)", arguments)
                self._connection.execute("SELECT textsim._replace_normal_forms(%s, %s)", arguments)

    def _judge(self) -> None:
        rng = self._rng
        pairs = [(pair.a, pair.b) for pair in self._corpus.pairs()]
        for _ in range(rng.choice((1, 1, 3))):
            judged = {(j.a, j.b): j.verdict for j in self._corpus.judgements()}
            if judged and rng.random() < 0.3:
                self._corpus.unjudge(*rng.choice(list(judged)))
                continue
            if pairs and rng.random() < 0.7:
                a, b = rng.choice(pairs)
            else:
                a, b = sorted(f"k{i}" for i in rng.sample(range(self._keys), 2))
            verdict = rng.choice((*Verdict, Verdict.DIFFERENT))
            try:
                self._corpus.judge(a, b, verdict, replaces=judged.get((a, b)))
            except ts.ConfigurationError as error:
                assert "have different scopes" in str(error)  # noqa: PT017

    def _document(self, key: str) -> Any:
        text = self._text()
        return (key, text, self._rng.choice("xy")) if self._is_scoped else (key, text)

    def _text(self) -> str:
        """Return a text of a chain of similar texts, a copy of a text or nearly, or another text."""
        rng = self._rng
        words = [f"w{rng.randrange(200)}" for _ in range(rng.choice((0, 1, 6, 8)))]
        kind = rng.random()
        if kind < 0.4:
            place = rng.randrange(40)
            words = [f"c{number}" for number in range(place, place + 8)]
        elif self._texts and kind < 0.9:
            words = rng.choice(self._texts[-30:]).split()
            for _ in range(rng.choice((0, 1, 1, 2))):
                words[rng.randrange(len(words))] = f"w{rng.randrange(200)}"
        if words:
            self._texts.append(" ".join(words))
        return " ".join(words)
