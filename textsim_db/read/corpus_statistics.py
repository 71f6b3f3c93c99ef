"""What is in a corpus: documents, words, similarities, buckets and what they take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from textsim_db.compare.verify import Criterion
from textsim_db.db.binary_format import load_int4_arrays
from textsim_db.db.dictionary import unknown_word
from textsim_db.db.engine import Connection
from textsim_db.db.store import Store
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.measures.by_name import JACCARD
from textsim_db.read import search
from textsim_db.read.pairs import snapshot
from textsim_db.read.stored_documents import Vocabulary, normal_forms, word_rows
from textsim_db.read.word_counts import Tally, words_at
from textsim_db.results import Frequency, Growth, Statistics
from textsim_db.text.streams import cut

CHUNK = 5000
STEPS = 20
QUANTILES = (0, 5, 25, 50, 75, 95, 100)
BINS = 100

_WORDS = """
SELECT pg_catalog.array_send(word_ids), normal_form FROM {document}
WHERE %(language)s::text IS NULL OR language = %(language)s
ORDER BY id
"""
_LANGUAGES = """
SELECT language, count(*) FROM {document}
WHERE %(language)s::text IS NULL OR language = %(language)s
GROUP BY language ORDER BY count(*) DESC, language
"""
_SOME = """
/* textsim-db: statistics of corpus {id}: sample */
SELECT key, pg_catalog.array_send(word_ids), normal_form FROM {document}
WHERE id = ANY (
    SELECT id FROM {document}
    WHERE shingle_count > 0 AND (%(language)s::text IS NULL OR language = %(language)s)
    ORDER BY pg_catalog.hashint8extended(id, %(seed)s) LIMIT %(sample)s
)
"""
_BUCKETS = """
/* textsim-db: statistics of corpus {id}: buckets */
SELECT s.size, count(*) FROM (SELECT count(*) AS size FROM {band} GROUP BY bucket) s
GROUP BY s.size ORDER BY s.size
"""
_BUCKETS_OF_LANGUAGE = """
/* textsim-db: statistics of corpus {id}: buckets of a language */
SELECT s.size, count(*)
FROM (
    SELECT count(*) AS size
    FROM {band} b JOIN {document} d ON d.id = b.document_id
    WHERE d.language = %(language)s
    GROUP BY b.bucket
) s
GROUP BY s.size ORDER BY s.size
"""
_STORAGE = """
SELECT t.name, pg_catalog.pg_table_size(t.name::regclass),
    pg_catalog.pg_indexes_size(t.name::regclass)
FROM unnest(ARRAY[{document_name}, {band_name}]) t (name)
"""


def statistics(
    store: Store,
    words: int,
    sample: int,
    seed: int,
    language: str | None,
    progress: Callable[[int, int], None] | None = None,
) -> Statistics:
    """Return what is in a corpus, in one snapshot but for the sample; see Corpus.statistics."""
    vocabulary = Vocabulary(store.dictionary)
    parameters = {"language": language, "seed": seed, "sample": sample}
    with snapshot(store.engine) as connection:
        languages = _languages(connection, store.corpus, language)
        documents = sum(languages.values())
        tally = _tallied(
            connection,
            store.corpus,
            vocabulary,
            language,
            None if progress is None else lambda done: progress(done, documents),
        )
        plain = connection.cursor(binary=True)
        statement = store.corpus.statement(_BUCKETS if language is None else _BUCKETS_OF_LANGUAGE)
        buckets = plain.execute(statement, parameters).fetchall()
        sizes = plain.execute(store.corpus.statement(_STORAGE)).fetchall()
        chosen = plain.execute(store.corpus.statement(_SOME), parameters).fetchall()
    criterion = Criterion(JACCARD, 0.0, language)
    similarities = _similarities(store, chosen, criterion)
    lengths = tally.lengths
    return Statistics(
        documents=len(lengths),
        empty=int((lengths == 0).sum()),
        words=int(lengths.sum()),
        vocabulary=tally.distinct,
        growth=_growth(tally),
        frequent=_frequent(tally, vocabulary, words),
        languages={name: count for name, count in languages.items() if name is not None},
        lengths=dict(zip(QUANTILES, _quantiles(lengths), strict=True)),
        sampled=len(chosen),
        candidates=len(similarities),
        similarities=np.histogram(similarities, BINS, (0, 1))[0].tolist(),
        buckets=[(int(size), int(number)) for size, number in buckets],
        storage={
            f"{what}{part}": int(value)
            for what, row in zip(("documents", "band rows"), sizes, strict=True)
            for part, value in zip(("", ", indexes"), row[1:], strict=True)
        },
    )


def document_frequencies(store: Store) -> tuple[dict[str, int], int]:
    """Return in how many documents each word occurs, and the number of documents."""
    vocabulary = Vocabulary(store.dictionary)
    with snapshot(store.engine) as connection:
        tally = _tallied(connection, store.corpus, vocabulary, None, None)
    places = np.flatnonzero(tally.documents)
    texts = vocabulary.texts(words_at(places).tolist())
    found = dict(zip(texts, tally.documents[places].tolist(), strict=True))
    return found, len(tally.lengths)


def _languages(
    connection: Connection, corpus: StoredCorpus, language: str | None
) -> dict[str | None, int]:
    """Return how many documents there are of each language, the most frequent first."""
    return dict(connection.execute(corpus.statement(_LANGUAGES), {"language": language}).fetchall())


def _tallied(
    connection: Connection,
    corpus: StoredCorpus,
    vocabulary: Vocabulary,
    language: str | None,
    progress: Callable[[int], None] | None,
) -> Tally:
    """Count the words of the documents."""
    tally, last = Tally(), 0
    with connection.cursor(corpus.label("words"), binary=True) as cursor:
        cursor.itersize = CHUNK
        cursor.execute(corpus.statement(_WORDS), {"language": language})
        done = 0
        for rows in cut(cursor, CHUNK, lambda row: 4 * len(row[0] or row[1])):
            waiting = {i: row[1] for i, row in enumerate(rows) if row[0] is None}
            counted, offsets = word_rows([row[0] for row in rows], waiting, vocabulary)
            # A tally is as long as its highest id, which a damaged document may put anywhere.
            highest = int(counted.max(initial=0))
            if highest > last and highest > (last := vocabulary.dictionary.last()):
                raise unknown_word(highest)
            tally.add(counted, offsets)
            done += len(rows)
            if progress is not None:
                progress(done)
    return tally


def _similarities(
    store: Store,
    chosen: list[tuple[Any, ...]],
    criterion: Criterion,
) -> list[float]:
    """Return the similarities of some documents to all their candidates."""
    forms = normal_forms(*load_int4_arrays([row[1] or b"" for row in chosen]), store.dictionary)
    texts = [form if row[2] is None else row[2] for form, row in zip(forms, chosen, strict=True)]
    found = search.query_forms(store, texts, criterion)
    return [
        match.similarity
        for row, matches in zip(chosen, found, strict=True)
        for match in matches
        if match.key != row[0]
    ]


def _growth(tally: Tally) -> list[Growth]:
    """Return the size of the vocabulary after each twentieth of the documents."""
    distinct, words = tally.growth, np.cumsum(tally.lengths)
    ends = np.unique(np.linspace(0, len(distinct), STEPS + 1).astype(np.int64)[1:])
    return [Growth(int(i), int(words[i - 1]), int(distinct[i - 1])) for i in ends if i]


def _frequent(tally: Tally, vocabulary: Vocabulary, most: int) -> list[Frequency]:
    """Return the most frequent words."""
    most = min(most, tally.distinct)
    places = np.argsort(-tally.counts, kind="stable")[:most]
    texts = vocabulary.texts(words_at(places).tolist())
    return [
        Frequency(text, int(tally.counts[place]), int(tally.documents[place]))
        for text, place in zip(texts, places.tolist(), strict=True)
    ]


def _quantiles(lengths: np.ndarray[Any, np.dtype[np.int64]]) -> list[int]:
    if not len(lengths):
        return [0] * len(QUANTILES)
    found: list[int] = np.percentile(lengths, QUANTILES, method="nearest").tolist()
    return found
