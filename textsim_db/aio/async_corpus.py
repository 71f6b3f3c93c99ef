"""Corpus: the methods of textsim_db.Corpus as coroutines and async iterators."""

from __future__ import annotations

from textsim_db import corpus
from textsim_db.aio.derive import Derived, coroutine, results, stream
from textsim_db.settings.corpus_settings import CorpusConfig


class Corpus(Derived[corpus.Corpus]):
    """A textsim_db.Corpus with coroutines; Database.create_corpus() and Database.corpus() return it.

    The arguments, results and errors are those of textsim_db.Corpus. `count()` stands for len(), and
    `contains(key)` for `in`. Iterables and functions among the arguments run in a thread. Tasks may
    share a corpus.

    Examples:
        >>> import asyncio
        >>> from textsim_db import aio
        >>> async def find(text: str) -> list[str]:
        ...     async with aio.connect() as db:
        ...         corpus = await db.corpus("news")
        ...         return [match.key for match in await corpus.query(text)]
        >>> asyncio.run(find("The city council approved the new budget for schools"))
        ['update', 'monday']
    """

    @property
    def name(self) -> str:
        """The name of the corpus."""
        return self._synchronous.name

    @property
    def config(self) -> CorpusConfig:
        """The settings of the corpus, which determine its signatures and buckets."""
        return self._synchronous.config

    count = coroutine(corpus.Corpus.__len__)
    contains = coroutine(corpus.Corpus.__contains__)
    status = coroutine(corpus.Corpus.status)
    activity = coroutine(corpus.Corpus.activity)
    failures = coroutine(corpus.Corpus.failures)
    retry_failures = coroutine(corpus.Corpus.retry_failures)
    detach = coroutine(corpus.Corpus.detach)
    remove = coroutine(corpus.Corpus.remove)
    expire = coroutine(corpus.Corpus.expire)
    scopes = coroutine(corpus.Corpus.scopes)
    untrack = coroutine(corpus.Corpus.untrack)
    members = results(corpus.Corpus.members)
    members_of = results(corpus.Corpus.members_of)
    cluster_of = coroutine(corpus.Corpus.cluster_of)
    judge = coroutine(corpus.Corpus.judge)
    judge_many = coroutine(corpus.Corpus.judge_many)
    unjudge = coroutine(corpus.Corpus.unjudge)
    judgements = results(corpus.Corpus.judgements)
    doubtful = results(corpus.Corpus.doubtful)

    add = coroutine(corpus.Corpus.add)
    add_many = coroutine(corpus.Corpus.add_many)
    add_unique = coroutine(corpus.Corpus.add_unique)

    query = coroutine(corpus.Corpus.query)
    query_many = coroutine(corpus.Corpus.query_many)
    neighbours = coroutine(corpus.Corpus.neighbours)
    nearest = coroutine(corpus.Corpus.nearest)
    candidates = coroutine(corpus.Corpus.candidates)
    passages = coroutine(corpus.Corpus.passages)
    passages_of = coroutine(corpus.Corpus.passages_of)
    characters = coroutine(corpus.Corpus.characters)
    shared_passages = stream(corpus.Corpus.shared_passages)
    contamination = stream(corpus.Corpus.contamination)
    containing = coroutine(corpus.Corpus.containing)
    pairs = results(corpus.Corpus.pairs)
    clusters = results(corpus.Corpus.clusters)
    duplicates = results(corpus.Corpus.duplicates)

    explain = coroutine(corpus.Corpus.explain)
    differences = stream(corpus.Corpus.differences)
    explain_cluster = coroutine(corpus.Corpus.explain_cluster)
    inspect_clusters = coroutine(corpus.Corpus.inspect_clusters)
    inspect_keys = coroutine(corpus.Corpus.inspect_keys)
    normal_form = coroutine(corpus.Corpus.normal_form)
    signature = coroutine(corpus.Corpus.signature)
    buckets = coroutine(corpus.Corpus.buckets)

    measure_recall = coroutine(corpus.Corpus.measure_recall)
    plan = coroutine(corpus.Corpus.plan)
    statistics = coroutine(corpus.Corpus.statistics)
    boilerplate = coroutine(corpus.Corpus.boilerplate)
    without_words = coroutine(corpus.Corpus.without_words)
    idf_weights = coroutine(corpus.Corpus.idf_weights)
    check = coroutine(corpus.Corpus.check)

    attach = coroutine(corpus.Corpus.attach)
    reconcile = coroutine(corpus.Corpus.reconcile)
    drift = stream(corpus.Corpus.drift)

    track = coroutine(corpus.Corpus.track)
    update_clusters = coroutine(corpus.Corpus.update_clusters)
    cluster_events = stream(corpus.Corpus.cluster_events)

    rebuild = coroutine(corpus.Corpus.rebuild)
    forget = coroutine(corpus.Corpus.forget)
    drop = coroutine(corpus.Corpus.drop)
