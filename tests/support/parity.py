"""Compare SQL with Python: words, shingles, signatures and buckets of any text are equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg

import textsim_db as ts
from textsim_db.settings.corpus_settings import CorpusConfig
from textsim_db.sketch import sketch_texts
from textsim_db.text.shingles import find_shingles
from textsim_db.text.stop_words import stop_words
from textsim_db.text.storable import to_bytes
from textsim_db.text.tokens import normal_form

CORPORA = ("word:1", "word:3", "char:5")
PASSAGES = (4, 13, 100)
EXACT = ("word:2", "char:5")
STOP_WORDS = ("the", "a", "of", "é", "漢", "ı", "1", "don't")
STOP_WORDS_CORPUS = "word:2, stop words"

# The normal form takes longest, so it is computed once for all corpora without stop words.
_COMPARISON = """
SELECT t.body, t.form, c.name, textsim._shingles_of_form(f.form, c.unit, c.shingle_length),
    s.signature, CASE WHEN c.bands IS NULL THEN s.signature
        ELSE textsim._buckets(s.signature::smallint[], c.bands, c.rows) END,
    textsim._fingerprints(c, f.form)
FROM (
    SELECT u.body, textsim.normal_form(u.body) AS form, u.place
    FROM unnest(%s::text[]) WITH ORDINALITY u (body, place)
    OFFSET 0
) t
CROSS JOIN textsim.corpus c
CROSS JOIN LATERAL (
    SELECT CASE WHEN c.stop_words = '{}' THEN t.form ELSE textsim._form(c, t.body) END AS form OFFSET 0
) f
CROSS JOIN LATERAL (
    SELECT textsim._signature(c, textsim._query_values(c, f.form)) AS signature OFFSET 0
) s
ORDER BY c.name, t.place
"""


def create_corpora(db: ts.Database) -> dict[str, CorpusConfig]:
    """Create corpora with bands and exact corpora, and return the configurations by name."""
    configs = {
        name: db.create_corpus(name, shingle=name, passages=passages, exist_ok=True).config
        for name, passages in zip(CORPORA, PASSAGES, strict=True)
    }
    for shingle in EXACT:
        name = f"{shingle}, exact"
        corpus = db.create_corpus(name, shingle=shingle, threshold=0.55, recall=1, exist_ok=True)
        configs[name] = corpus.config
    # The list of stop words goes through SQL, to compare how SQL and Python normalise it.
    if STOP_WORDS_CORPUS not in db.corpora():
        with db.engine.begin() as connection:
            connection.exec_driver_sql(
                "SELECT textsim.create_corpus(%s, 'word:2', stop_words => %s)",
                (STOP_WORDS_CORPUS, list(STOP_WORDS)),
            )
    configs[STOP_WORDS_CORPUS] = db.corpus(STOP_WORDS_CORPUS).config
    assert configs[STOP_WORDS_CORPUS].stop_words == stop_words(STOP_WORDS)
    return configs


def differences(
    connection: psycopg.Connection[Any], corpora: dict[str, CorpusConfig], texts: Sequence[str]
) -> Iterator[str]:
    """Yield the texts for which SQL and Python differ, in any stage from normal form to buckets."""
    for body, form, name, shingles, signature, buckets, fingerprints in connection.execute(
        _COMPARISON, [list(texts)]
    ):
        config = corpora[name]
        expected = (
            *(normal_form(body), shingles_without_stop_words(body, config)),
            sketch_texts.signature(body, config).tolist(),
            *(sketch_texts.buckets(body, config).tolist(), fingerprints_of(body, config)),
        )
        if expected != (form, shingles, signature, buckets, fingerprints):
            yield f"{name} of {body!r}: Python {expected[:2]!r}, SQL {(form, shingles)!r}"


def fingerprints_of(text: str, config: CorpusConfig) -> list[int] | None:
    """Return the fingerprints of a text; None in a corpus without passages."""
    fingerprints = sketch_texts.sketch([to_bytes(text)], config).fingerprints
    return None if fingerprints is None else fingerprints.values.tolist()


def shingles_without_stop_words(text: str, config: CorpusConfig) -> list[str]:
    """Return the shingles that a corpus makes of a text, without its stop words."""
    tokens = sketch_texts.tokens_without([to_bytes(text)], config)
    return find_shingles(tokens, config.shingle).texts()
