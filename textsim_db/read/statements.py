"""The SQL statements of this room, grouped by task.

A bucket needs no column for its band, because the number of the band seeds the bucket's hash. A
statement that may run for long begins with a comment, which pg_stat_activity shows.
"""

from __future__ import annotations

from typing import Final, LiteralString

_WORDS: Final[LiteralString] = """d.id, d.key, d.shingle_count,
    pg_catalog.array_send(d.word_ids), d.normal_form"""
"""The columns that StoredDocuments needs to compare words."""
_FIELDS: Final[LiteralString] = f"{_WORDS}, pg_catalog.array_send(d.signature)"
"""The columns that StoredDocuments needs to compare words and signatures."""

# Snapshots.

ONE_STATE: Final[LiteralString] = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
EXPORT_SNAPSHOT: Final[LiteralString] = "SELECT pg_catalog.pg_export_snapshot()"
IMPORT_SNAPSHOT: Final[LiteralString] = "SET TRANSACTION SNAPSHOT {}"

# Searches: the candidates of texts.

COUNT_SHARED_BUCKETS: Final[LiteralString] = """
SELECT d.key, c.shared
FROM (
    SELECT b.document_id, count(*) AS shared
    FROM pg_catalog.unnest(%s::integer[]) q (bucket)
    JOIN {band} b ON b.bucket = q.bucket
    GROUP BY b.document_id
) c
JOIN {document} d ON d.id = c.document_id
WHERE textsim._is_candidate(c.shared, d.shingle_count, %s, %s)
"""
CANDIDATES_OF_ONE: Final[LiteralString] = f"""
SELECT {_FIELDS}
FROM (
    SELECT b.document_id
    FROM pg_catalog.unnest(%s::integer[]) q (bucket)
    JOIN {{band}} b ON b.bucket = q.bucket
    GROUP BY b.document_id
) c
JOIN {{document}} d ON d.id = c.document_id
WHERE true
"""
CANDIDATES_OF_MANY: Final[LiteralString] = f"""
/* textsim-db: candidates of many texts in corpus {{id}} */
SELECT {_FIELDS}, pg_catalog.array_send(c.queries)
FROM (
    SELECT p.document_id, pg_catalog.array_agg(p.query) AS queries
    FROM (
        SELECT b.document_id, q.query
        FROM unnest(%s::integer[], %s::integer[]) q (query, bucket)
        JOIN {{band}} b ON b.bucket = q.bucket
        GROUP BY b.document_id, q.query
    ) p
    GROUP BY p.document_id
) c
JOIN {{document}} d ON d.id = c.document_id
WHERE true
"""
# In an exact corpus, the first count keeps documents that share enough rows with any size, and then the
# sizes of both decide.
EXACT_CANDIDATES_OF_ONE: Final[LiteralString] = f"""
SELECT {_FIELDS}
FROM (
    SELECT b.document_id, count(*) AS shared
    FROM pg_catalog.unnest(%s::integer[]) q (bucket)
    JOIN {{band}} b ON b.bucket = q.bucket
    GROUP BY b.document_id HAVING count(*) >= %s
) c
JOIN {{document}} d ON d.id = c.document_id
WHERE textsim._is_candidate(c.shared, d.shingle_count, %s, %s)
"""
_EXACT_PAIRS_OF_MANY: Final[LiteralString] = """
        SELECT s.document_id, s.query
        FROM (
            SELECT b.document_id, q.query, count(*) AS shared
            FROM unnest(%s::integer[], %s::integer[]) q (query, bucket)
            JOIN {band} b ON b.bucket = q.bucket
            GROUP BY b.document_id, q.query HAVING count(*) >= (%s::integer[])[q.query + 1]
        ) s
        JOIN {document} e ON e.id = s.document_id
        WHERE textsim._is_candidate(
            s.shared, e.shingle_count, (%s::integer[])[s.query + 1], %s)"""
EXACT_CANDIDATES_OF_MANY: Final[LiteralString] = f"""
/* textsim-db: candidates of many texts in corpus {{id}} */
SELECT {_FIELDS}, pg_catalog.array_send(c.queries)
FROM (
    SELECT p.document_id, pg_catalog.array_agg(p.query) AS queries
    FROM ({_EXACT_PAIRS_OF_MANY}
    ) p
    GROUP BY p.document_id
) c
JOIN {{document}} d ON d.id = c.document_id
WHERE true
"""
OF_LANGUAGE: Final[LiteralString] = "AND d.language = %s"
"""Limits the statements above to the documents of one language."""

DOCUMENT_OF_KEY: Final[LiteralString] = f"SELECT {_FIELDS} FROM {{document}} d WHERE d.key = %s"

# Pairs and clusters: the documents of each bucket. Columns of many rows are sent as arrays.

# If few pages of the table are marked as visible to all, the planner prefers to read the whole table
# and sort it. We read one range of buckets after another, so it would read the table once a range.
# Parallel workers are off, because they mix the order of the rows. A second connection is faster.
READ_IN_INDEX_ORDER: Final[LiteralString] = """
SELECT pg_catalog.set_config('enable_seqscan', 'off', true),
    pg_catalog.set_config('enable_bitmapscan', 'off', true),
    pg_catalog.set_config('max_parallel_workers_per_gather', '0', true)
"""
SIZE_OF_BANDS: Final[LiteralString] = "SELECT pg_catalog.pg_relation_size({band_name}::regclass)"
# One number for each row, in the order of the index: the bucket, and then the id plus 2^31. To send
# all rows is cheaper than a GROUP BY on the server, though most buckets have a single row.
BAND_ROWS: Final[LiteralString] = """
/* textsim-db: pairs of corpus {id}: band rows */
SELECT pg_catalog.array_send(pg_catalog.array_agg(
    (b.bucket::bigint << 32) + 2147483648 + b.document_id))
FROM {band} b
WHERE b.bucket BETWEEN %(low)s::integer AND %(high)s::integer
"""
BAND_ROWS_OF_LANGUAGE: Final[LiteralString] = """
/* textsim-db: pairs of corpus {id}: band rows of a language */
SELECT pg_catalog.array_send(pg_catalog.array_agg(
    (b.bucket::bigint << 32) + 2147483648 + b.document_id))
FROM {band} b JOIN {document} d ON d.id = b.document_id
WHERE b.bucket BETWEEN %(low)s::integer AND %(high)s::integer AND d.language = %(language)s
"""
# Different words may have the same hash, because hash_array_extended() folds the hash of each element
# to 32 bits.
HASHES_OF_WORDS: Final[LiteralString] = """
/* textsim-db: pairs of corpus {id}: hashes of words */
SELECT pg_catalog.array_send(pg_catalog.array_agg(d.id)),
    pg_catalog.array_send(pg_catalog.array_agg(coalesce(
        pg_catalog.hash_array_extended(d.word_ids, 0),
        pg_catalog.hashtextextended(d.normal_form, 0))))
FROM {document} d WHERE d.id = ANY (%s::integer[])
"""
COPIES: Final[LiteralString] = """
/* textsim-db: pairs of corpus {id}: copies */
SELECT pg_catalog.array_send(pg_catalog.array_agg(d.id))
FROM {document} d WHERE d.id = ANY (%s::integer[])
GROUP BY d.word_ids, d.normal_form HAVING count(*) > 1
"""
# The caller replaces d.signature with the first values of its bands. The statement skips damaged
# signatures, whose length is wrong.
FIRST_VALUES: Final[LiteralString] = """
/* textsim-db: pairs of corpus {id}: first values of bands */
SELECT pg_catalog.array_send(pg_catalog.array_agg(s.id)),
    pg_catalog.array_send(pg_catalog.array_agg(s.firsts))
FROM (
    SELECT d.id, ARRAY[d.signature] AS firsts FROM {document} d
    WHERE pg_catalog.cardinality(signature) = %s AND d.id = ANY (%s::integer[])
) s
"""
COUNTS_OF_SHINGLES: Final[LiteralString] = """
/* textsim-db: pairs of corpus {id}: sizes of documents */
SELECT pg_catalog.array_send(pg_catalog.array_agg(d.id)),
    pg_catalog.array_send(pg_catalog.array_agg(d.shingle_count))
FROM {document} d WHERE d.shingle_count > 0
"""
DOCUMENTS_OF_IDS: Final[LiteralString] = f"""
/* textsim-db: pairs of corpus {{id}}: documents */
SELECT {_WORDS} FROM {{document}} d WHERE d.id = ANY (%s::integer[])
"""
SIGNATURES_OF_IDS: Final[LiteralString] = """
/* textsim-db: clusters of corpus {id}: signatures */
SELECT d.id, pg_catalog.array_send(d.signature) FROM {document} d
WHERE d.id = ANY (%s::integer[])
"""
HAS_LONG_DOCUMENTS: Final[LiteralString] = """
SELECT pg_catalog.pg_relation_size(reltoastrelid) > 0
FROM pg_catalog.pg_class WHERE oid = {document_name}::regclass
"""
# pg_column_size() does not read arrays that are stored apart from their row. The factor is 2 because
# array_send() sends eight bytes for a value of four.
SIZE_OF_DOCUMENTS: Final[LiteralString] = """
/* textsim-db: pairs of corpus {id}: sizes */
SELECT coalesce(sum(coalesce(
    2 * pg_catalog.pg_column_size(word_ids), pg_catalog.octet_length(normal_form))), 0)
FROM {document} WHERE id = ANY (%s::integer[])
"""
KEYS_OF_IDS: Final[LiteralString] = """
/* textsim-db: pairs of corpus {id}: keys */
SELECT id, key FROM {document} WHERE id = ANY (%s::integer[])
"""

# Recall by brute force: a sample is compared with all documents.

IDS_WITH_SHINGLES: Final[LiteralString] = """
SELECT id FROM {document} WHERE pg_catalog.cardinality(signature) > 0 ORDER BY id
"""
COUNT_AND_MEAN_WORDS: Final[LiteralString] = """
SELECT count(*), coalesce(avg(coalesce(
    pg_catalog.cardinality(word_ids),
    -- The words of this document have no ids yet.
    pg_catalog.cardinality(pg_catalog.string_to_array(normal_form, ' ')))), 0)::float8
FROM {document}
"""
SAMPLE_OF_IDS: Final[LiteralString] = f"""
SELECT {_FIELDS} FROM {{document}} d WHERE d.id = ANY (%s::integer[]) ORDER BY d.id
"""
DOCUMENTS_WITH_SHINGLES: Final[LiteralString] = f"""
SELECT {_FIELDS} FROM {{document}} d WHERE pg_catalog.cardinality(d.signature) > 0
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
GROUP BY p.query
"""

# Statistics.

WORDS: Final[LiteralString] = """
SELECT pg_catalog.array_send(word_ids), normal_form FROM {document}
WHERE %(language)s::text IS NULL OR language = %(language)s
ORDER BY id
"""
COUNT_LANGUAGES: Final[LiteralString] = """
SELECT language, count(*) FROM {document}
WHERE %(language)s::text IS NULL OR language = %(language)s
GROUP BY language ORDER BY count(*) DESC, language
"""
RANDOM_DOCUMENTS: Final[LiteralString] = """
/* textsim-db: statistics of corpus {id}: sample */
SELECT key, pg_catalog.array_send(word_ids), normal_form FROM {document}
WHERE id = ANY (
    SELECT id FROM {document}
    WHERE shingle_count > 0 AND (%(language)s::text IS NULL OR language = %(language)s)
    ORDER BY pg_catalog.hashint8extended(id, %(seed)s) LIMIT %(sample)s
)
"""
BUCKET_SIZES: Final[LiteralString] = """
/* textsim-db: statistics of corpus {id}: buckets */
SELECT s.size, count(*) FROM (SELECT count(*) AS size FROM {band} GROUP BY bucket) s
GROUP BY s.size ORDER BY s.size
"""
BUCKET_SIZES_OF_LANGUAGE: Final[LiteralString] = """
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
STORAGE: Final[LiteralString] = """
SELECT t.name, pg_catalog.pg_table_size(t.name::regclass),
    pg_catalog.pg_indexes_size(t.name::regclass)
FROM unnest(ARRAY[{document_name}, {band_name}]) t (name)
"""
COUNT_DOCUMENTS: Final[LiteralString] = """
/* textsim-db: count the documents of corpus {id} */ SELECT count(*) FROM {document}
"""
HAS_DOCUMENT: Final[LiteralString] = "SELECT EXISTS (SELECT FROM {document} WHERE key = %s)"

# Integrity: these find stored rows that contradict each other.

WRONG_WORD_HASHES: Final[LiteralString] = """
/* textsim-db: check the dictionary */
SELECT w.id, w.word FROM textsim.word w WHERE w.hash <> pg_catalog.hashtextextended(w.word, 0)
"""
DOCUMENTS_TO_CHECK: Final[LiteralString] = """
SELECT key, shingle_count, pg_catalog.array_send(word_ids), pg_catalog.array_send(signature),
    normal_form, language
FROM {document}
"""
WORDS_OF_IDS: Final[LiteralString] = """
/* textsim-db: check documents: words */
SELECT id, word FROM textsim.word WHERE id = ANY (%s::integer[])
"""
# Documents whose words have no ids, and which no entry of the log names, so that no worker will give
# them ids. unnest() lets the planner hash the keys; d.key = ANY (p.keys) would compare each document
# with each entry.
FORGOTTEN_DOCUMENTS: Final[LiteralString] = """
/* textsim-db: check corpus {id}: words that wait for ids */
SELECT d.key FROM {document} d
WHERE d.word_ids IS NULL AND NOT EXISTS (
    SELECT FROM textsim.pending p CROSS JOIN pg_catalog.unnest(p.keys) k (key)
    WHERE p.corpus_id = %s AND k.key = d.key
)
"""
SOURCE_PROBLEMS: Final[LiteralString] = """
/* textsim-db: check attached tables */
SELECT s.relation::text, p.problem
FROM textsim.source s CROSS JOIN LATERAL textsim._source_problems(s) p (problem)
WHERE s.corpus_id = %s AND s.active
"""
# One sum of hashes for the band rows of neighbouring ids, which needs no sorting. The seed is secret,
# so nobody can prepare other rows with the same sum.
SUMS_OF_BANDS: Final[LiteralString] = """
/* textsim-db: check corpus {id}: band rows */
SELECT document_id >> %(bits)s, count(*), sum(pg_catalog.hashint4extended(
    bucket, pg_catalog.hashint4extended(document_id, %(seed)s)))
FROM {band} GROUP BY 1
"""
BUCKETS_OF_BANDS: Final[LiteralString] = """
    SELECT d.id, (pg_catalog.hash_array_extended(
        d.signature[j * %(rows)s + 1:(j + 1) * %(rows)s], j) << 32 >> 32)::integer AS bucket
    FROM {document} d CROSS JOIN pg_catalog.generate_series(0, %(bands)s - 1) j
    WHERE pg_catalog.cardinality(d.signature) > 0"""
BUCKETS_OF_VALUES: Final[LiteralString] = """
    SELECT d.id, u.bucket FROM {document} d CROSS JOIN LATERAL unnest(d.signature) u (bucket)
    WHERE true"""
"""The buckets that signatures give, in a corpus of bands and in an exact one."""


def sums_of_signatures(buckets: LiteralString) -> LiteralString:
    """Return the statement that sums up the buckets of signatures as SUMS_OF_BANDS does those stored."""
    return f"""
/* textsim-db: check corpus {{id}}: buckets of signatures */
SELECT b.id >> %(bits)s, count(*), sum(pg_catalog.hashint4extended(
    b.bucket, pg_catalog.hashint4extended(b.id, %(seed)s)))
FROM ({buckets}
) b GROUP BY 1
"""


def wrong_band_rows(buckets: LiteralString) -> LiteralString:
    """Return the statement that compares the rows that signatures give with the stored ones.

    Both are multisets. A positive sum counts missing rows, a negative sum counts extra rows.
    """
    return f"""
/* textsim-db: check corpus {{id}}: wrong band rows */
SELECT b.id, d.key, b.bucket, sum(b.sign)
FROM (
    SELECT document_id AS id, bucket, -1 AS sign FROM {{band}}
    WHERE document_id >> %(bits)s = ANY (%(blocks)s::integer[])
    UNION ALL
    SELECT c.id, c.bucket, 1
    FROM ({buckets} AND d.id >> %(bits)s = ANY (%(blocks)s::integer[])
    ) c
) b
LEFT JOIN {{document}} d ON d.id = b.id
GROUP BY b.id, d.key, b.bucket
HAVING sum(b.sign) <> 0
"""
