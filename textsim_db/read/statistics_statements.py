"""The SQL statements that count or sample documents: recall, statistics and boilerplate."""

from __future__ import annotations

from typing import Final, LiteralString

from textsim_db.read.statements import FIELDS

# Recall by brute force: a sample is compared with all documents.

IDS_WITH_SHINGLES: Final[LiteralString] = """
SELECT d.id FROM {document} d
WHERE pg_catalog.cardinality(d.signature) > 0
    AND (%(part)s::bigint IS NULL OR d.part = %(part)s){alive}
ORDER BY d.id
"""
COUNT_AND_MEAN_WORDS: Final[LiteralString] = """
SELECT count(*), coalesce(avg(coalesce(
    pg_catalog.cardinality(d.word_ids),
    -- The words of this document have no ids yet.
    pg_catalog.cardinality(pg_catalog.string_to_array(d.normal_form, ' ')))), 0)::float8
FROM {document} d WHERE (%(part)s::bigint IS NULL OR d.part = %(part)s){alive}
"""
SAMPLE_OF_IDS: Final[LiteralString] = f"""
SELECT {FIELDS} FROM {{document}} d WHERE d.id = ANY (%s::integer[]) ORDER BY d.id
"""
DOCUMENTS_WITH_SHINGLES: Final[LiteralString] = f"""
SELECT {FIELDS} FROM {{document}} d
WHERE pg_catalog.cardinality(d.signature) > 0
    AND (%(part)s::bigint IS NULL OR d.part = %(part)s){{alive}}
"""
COUNT_CANDIDATES: Final[LiteralString] = """
/* textsim-db: measure recall of corpus {id}: candidates */
SELECT count(*) - 1
FROM (
    SELECT b.document_id, q.query, count(*) AS shared
    FROM unnest(%s::integer[], %s::integer[]) q (query, bucket)
    JOIN {band} b ON b.bucket = q.bucket
    GROUP BY b.document_id, q.query
) p
JOIN {document} d ON d.id = p.document_id
WHERE textsim._is_candidate(p.shared, d.shingle_count, (%s::integer[])[p.query + 1], %s)
    AND d.part IS NOT DISTINCT FROM %s::bigint{alive}
GROUP BY p.query
"""

# Statistics.

_CHOSEN: Final[LiteralString] = """(%(language)s::text IS NULL OR d.language = %(language)s)
    AND (%(part)s::bigint IS NULL OR d.part = %(part)s){alive}"""
WORDS: Final[LiteralString] = f"""
SELECT pg_catalog.array_send(d.word_ids), d.normal_form FROM {{document}} d
WHERE {_CHOSEN} ORDER BY d.id
"""
COUNT_LANGUAGES: Final[LiteralString] = f"""
SELECT d.language, count(*) FROM {{document}} d WHERE {_CHOSEN}
GROUP BY d.language ORDER BY count(*) DESC, d.language
"""
RANDOM_DOCUMENTS: Final[LiteralString] = f"""
/* textsim-db: statistics of corpus {{id}}: sample */
SELECT key, pg_catalog.array_send(word_ids), normal_form, part FROM {{document}}
WHERE id = ANY (
    SELECT d.id FROM {{document}} d WHERE d.shingle_count > 0 AND {_CHOSEN}
    ORDER BY pg_catalog.hashint8extended(d.id, %(seed)s) LIMIT %(sample)s
)
"""
BUCKET_SIZES: Final[LiteralString] = """
/* textsim-db: statistics of corpus {id}: buckets */
SELECT s.size, count(*) FROM (SELECT count(*) AS size FROM {band} GROUP BY bucket) s
GROUP BY s.size ORDER BY s.size
"""
BUCKET_SIZES_OF_SOME: Final[LiteralString] = f"""
/* textsim-db: statistics of corpus {{id}}: buckets of a language or a part */
SELECT s.size, count(*)
FROM (
    SELECT count(*) AS size
    FROM {{band}} b JOIN {{document}} d ON d.id = b.document_id
    WHERE {_CHOSEN}
    GROUP BY b.bucket
) s
GROUP BY s.size ORDER BY s.size
"""
STORAGE: Final[LiteralString] = """
SELECT t.name, pg_catalog.pg_table_size(t.name::regclass),
    pg_catalog.pg_indexes_size(t.name::regclass)
FROM pg_catalog.unnest(ARRAY[{document_name}, {band_name}, {passage_name}]) t (name)
WHERE pg_catalog.to_regclass(t.name) IS NOT NULL
"""
# Boilerplate. The same documents are sampled until the corpus changes.

SIZE_OF_CORPUS: Final[LiteralString] = """
/* textsim-db: size of corpus {id} */
SELECT count(*), pg_catalog.pg_table_size({document_name}::regclass) FROM {document}
"""
SAMPLE_OF_WORDS: Final[LiteralString] = """
/* textsim-db: sample of documents of corpus {id} */
SELECT id, key, pg_catalog.array_send(word_ids), normal_form FROM {document}
TABLESAMPLE BERNOULLI (%s) REPEATABLE (1)
"""
CLUSTERS_OF_IDS: Final[LiteralString] = """
/* textsim-db: clusters of documents of corpus {id} */
SELECT m.document_id, m.cluster FROM textsim.member_{id} m WHERE m.document_id = ANY (%s)
"""
WITHOUT_WORDS: Final[LiteralString] = """
/* textsim-db: documents without words of corpus {id} */
SELECT count(*), coalesce(
    (pg_catalog.array_agg(d.key ORDER BY d.key COLLATE "C"))[1:5], '{{}}')
FROM {document} d WHERE d.shingle_count = 0{alive}
"""
