"""The SQL statements of searches, pairs and clusters. A band's number seeds the hash of its buckets."""

from __future__ import annotations

from typing import Final, LiteralString

TO_COMPARE: Final[LiteralString] = """d.id, d.key, d.shingle_count,
    pg_catalog.array_send(d.word_ids), d.normal_form, d.part, d.guard"""
"""The columns that StoredDocuments needs to compare words."""
FIELDS: Final[LiteralString] = f"{TO_COMPARE}, pg_catalog.array_send(d.signature)"
"""The columns that StoredDocuments needs to compare words and signatures."""

# Snapshots.

ONE_STATE: Final[LiteralString] = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
EXPORT_SNAPSHOT: Final[LiteralString] = "SELECT pg_catalog.pg_export_snapshot()"
IMPORT_SNAPSHOT: Final[LiteralString] = "SET TRANSACTION SNAPSHOT {}"

# Searches: the candidates of texts.

_IS_CANDIDATE: Final[LiteralString] = "textsim._is_candidate(c.shared, d.shingle_count, %s, %s)"


def _of_one(
    table: LiteralString,
    column: LiteralString,
    fields: LiteralString = TO_COMPARE,
    having: LiteralString = "",
    condition: LiteralString = "true",
) -> LiteralString:
    """Return the statement that finds the documents of a table with one of some values."""
    # A query by _candidates_N of SQL, which has the same join, takes 1.06 to 1.35 times as long.
    return f"""
SELECT {fields}
FROM (
    SELECT b.document_id, count(*) AS shared
    FROM pg_catalog.unnest(%s::integer[]) q (value)
    JOIN {table} b ON b.{column} = q.value
    GROUP BY b.document_id{having}
) c
JOIN {{document}} d ON d.id = c.document_id
WHERE {condition}{{alive}}
"""


def _of_many(pairs: LiteralString) -> LiteralString:
    """Return the statement that finds the documents of many queries; pairs: their ids and queries."""
    return f"""
/* textsim-db: candidates of many texts in corpus {{id}} */
SELECT {TO_COMPARE}, pg_catalog.array_send(c.queries)
FROM (
    SELECT p.document_id, pg_catalog.array_agg(p.query) AS queries
    FROM ({pairs}
    ) p
    GROUP BY p.document_id
) c
JOIN {{document}} d ON d.id = c.document_id
WHERE true{{alive}}
"""


def _candidates_of_many(table: LiteralString, column: LiteralString) -> LiteralString:
    """Return the statement that finds the documents with one of the values of each query."""
    return _of_many(f"""
        SELECT b.document_id, q.query
        FROM unnest(%s::integer[], %s::integer[]) q (query, value)
        JOIN {table} b ON b.{column} = q.value
        GROUP BY b.document_id, q.query""")


COUNT_SHARED_BUCKETS: Final = _of_one("{band}", "bucket", "d.key, c.shared", "", _IS_CANDIDATE)
CANDIDATES_OF_ONE: Final = _of_one("{band}", "bucket")
CANDIDATES_OF_MANY: Final = _candidates_of_many("{band}", "bucket")
PASSAGE_CANDIDATES_OF_ONE: Final = _of_one("{passage}", "fingerprint")
PASSAGE_CANDIDATES_OF_MANY: Final = _candidates_of_many("{passage}", "fingerprint")
# In an exact corpus, the first count keeps documents that share enough rows with any size, and then the
# sizes of both decide.
EXACT_CANDIDATES_OF_ONE: Final = _of_one(
    "{band}", "bucket", having=" HAVING count(*) >= %s", condition=_IS_CANDIDATE
)
EXACT_CANDIDATES_OF_MANY: Final = _of_many("""
        SELECT s.document_id, s.query
        FROM (
            SELECT b.document_id, q.query, count(*) AS shared
            FROM unnest(%s::integer[], %s::integer[]) q (query, bucket)
            JOIN {band} b ON b.bucket = q.bucket
            GROUP BY b.document_id, q.query HAVING count(*) >= (%s::integer[])[q.query + 1]
        ) s
        JOIN {document} e ON e.id = s.document_id
        WHERE textsim._is_candidate(
            s.shared, e.shingle_count, (%s::integer[])[s.query + 1], %s)""")
CANDIDATES_FOR_MERGES: Final = _of_many("""
        SELECT s.document_id, s.query
        FROM (
            SELECT b.document_id, q.query, count(*) AS shared
            FROM (
                SELECT g.guard, textsim._mates_{id}(g.guard) AS mates
                FROM (SELECT DISTINCT pg_catalog.unnest(%s::bigint[]) AS guard) g
                OFFSET 0
            ) g
            JOIN (
                SELECT u.query, u.bucket, (%s::bigint[])[u.query + 1] AS guard
                FROM unnest(%s::integer[], %s::integer[]) u (query, bucket)
            ) q ON q.guard = g.guard
            CROSS JOIN LATERAL (
                SELECT r.document_id FROM {band} r
                WHERE r.bucket = q.bucket AND g.mates IS NULL
                UNION ALL
                SELECT r.document_id FROM {band} r
                WHERE r.bucket = q.bucket AND r.document_id = ANY (g.mates)
            ) b
            GROUP BY b.document_id, q.query
        ) s
        JOIN {document} e ON e.id = s.document_id
        WHERE e.guard = (%s::bigint[])[s.query + 1] AND textsim._is_candidate(
            s.shared, e.shingle_count, (%s::integer[])[s.query + 1], %s)""")
OF_LANGUAGE: Final[LiteralString] = " AND d.language = %s"
OF_PART: Final[LiteralString] = " AND d.part = %s"
"""Limit the statements above to the documents of one language, or of one part."""

COMPARES_ALL: Final[LiteralString] = "SELECT textsim._compares_all({id}, textsim._part(%s), false)"
NEAREST_CANDIDATES: Final[LiteralString] = f"""
/* textsim-db: documents of corpus {{id}} that may be nearest */
SELECT {TO_COMPARE}
FROM textsim._candidates_{{id}}(
    %s, %s, NULL, NULL, %s, %s, NULL, NULL, with_rejected => %s, most => %s) k
JOIN {{document}} d ON d.key = k.key
"""

DOCUMENT_OF_KEY: Final[LiteralString] = (
    f"SELECT {FIELDS} FROM {{document}} d WHERE d.key = %s{{alive}}"
)

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
# The band rows have no index on their documents, so the signatures give the buckets.
BAND_ROWS_OF_PART: Final[LiteralString] = """
/* textsim-db: pairs of corpus {id}: band rows of a part */
SELECT pg_catalog.array_send(pg_catalog.array_agg(
    (b.bucket::bigint << 32) + 2147483648 + d.id))
FROM {document} d
CROSS JOIN LATERAL pg_catalog.unnest(
    textsim._in_part(textsim._buckets(d.signature, %(bands)s, %(rows)s), d.part)) b (bucket)
WHERE b.bucket BETWEEN %(low)s::integer AND %(high)s::integer AND d.part = %(part)s
    AND (%(language)s::text IS NULL OR d.language = %(language)s)
"""
UNCOUNTED_DOCUMENTS: Final[LiteralString] = """
/* textsim-db: pairs of corpus {id}: expired and rejected documents */
SELECT pg_catalog.array_send(pg_catalog.array_agg(d.id ORDER BY d.id))
FROM {document} d WHERE NOT (true{alive})
"""
HIGHEST_ID: Final[LiteralString] = "SELECT coalesce(max(d.id), 0) FROM {document} d"
PARTS_OF_IDS: Final[LiteralString] = """
/* textsim-db: pairs of corpus {id}: parts */
SELECT pg_catalog.array_send(pg_catalog.array_agg(d.id)),
    pg_catalog.array_send(pg_catalog.array_agg(coalesce(d.part, 0))),
    pg_catalog.array_send(pg_catalog.array_agg(coalesce(d.guard, 0)))
FROM {document} d WHERE d.id = ANY (%s)
"""
# Different words may have the same hash, because hash_array_extended() folds the hash of each element
# to 32 bits.
HASHES_OF_WORDS: Final[LiteralString] = """
/* textsim-db: pairs of corpus {id}: hashes of words */
SELECT pg_catalog.array_send(pg_catalog.array_agg(d.id)),
    pg_catalog.array_send(pg_catalog.array_agg(coalesce(
        pg_catalog.hash_array_extended(d.word_ids, 0),
        pg_catalog.hashtextextended(d.normal_form, 0)) # coalesce(d.part, 0)))
FROM {document} d WHERE d.id = ANY (%s::integer[])
"""
COPIES: Final[LiteralString] = """
/* textsim-db: pairs of corpus {id}: copies */
SELECT pg_catalog.array_send(pg_catalog.array_agg(d.id))
FROM {document} d WHERE d.id = ANY (%s::integer[])
GROUP BY d.word_ids, d.normal_form, d.part HAVING count(*) > 1
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
# The tables are named, so that a corpus that was rebuilt meanwhile is an error.
_CORPUS_WITH_PASSAGES: Final[LiteralString] = """
FROM textsim.corpus c WHERE c.id = {id} AND NOT EXISTS (SELECT FROM {passage} WHERE false)
"""
COMMON_FINGERPRINTS: Final[LiteralString] = f"""
SELECT pg_catalog.array_send(textsim._fingerprints_of_many(c, %s::integer[], %s, %s))
{_CORPUS_WITH_PASSAGES}"""
ESTIMATE_DOCUMENTS: Final[LiteralString] = (
    "SELECT textsim._estimated_rows({document_name}::pg_catalog.regclass)"
)
COUNT_DOCUMENTS_OF_FINGERPRINT: Final[LiteralString] = f"""
SELECT textsim._count_documents_of(c, %s::integer, %s)
{_CORPUS_WITH_PASSAGES}"""
FINGERPRINTS_OF_MANY: Final[LiteralString] = f"""
/* textsim-db: shared passages of corpus {{id}}: fingerprints of many documents */
SELECT pg_catalog.array_send(f.fingerprints), f.parts
FROM (SELECT c {_CORPUS_WITH_PASSAGES}) o, textsim._fingerprints_of_all(o.c, %s) f
"""
SHARED_FINGERPRINTS: Final[LiteralString] = """
/* textsim-db: shared passages of corpus {id} */
SELECT x.document_id, pg_catalog.array_send(pg_catalog.array_agg(DISTINCT y.document_id))
FROM {passage} x JOIN {passage} y ON y.fingerprint = x.fingerprint AND y.document_id > x.document_id
WHERE NOT EXISTS (
    SELECT FROM unnest(%s::integer[], %s::bigint[]) k (fingerprint, part)
    WHERE k.fingerprint = x.fingerprint AND (k.part IS NULL OR k.part = (
        SELECT o.part FROM {document} o WHERE o.id = x.document_id)))
GROUP BY x.document_id
"""
DOCUMENTS_OF_IDS: Final[LiteralString] = f"""
/* textsim-db: pairs of corpus {{id}}: documents */
SELECT {TO_COMPARE} FROM {{document}} d WHERE d.id = ANY (%s::integer[])
"""
SIGNATURES_OF_IDS: Final[LiteralString] = """
/* textsim-db: clusters of corpus {id}: signatures */
SELECT d.id, pg_catalog.array_send(d.signature) FROM {document} d
WHERE d.id = ANY (%s::integer[])
"""
HAS_LONG_DOCUMENTS: Final[LiteralString] = """
SELECT pg_catalog.pg_relation_size(reltoastrelid) > 0
FROM pg_catalog.pg_class WHERE oid = {document_name}::regclass::oid
"""
# pg_column_size() does not read arrays that are stored apart from their row. The factor is 2 because
# array_send() sends eight bytes for a value of four.
SIZE_OF_DOCUMENTS: Final[LiteralString] = """
/* textsim-db: pairs of corpus {id}: sizes */
SELECT coalesce(sum(coalesce(
    2 * pg_catalog.pg_column_size(word_ids), pg_catalog.octet_length(normal_form))), 0)
FROM {document} WHERE id = ANY (%s::integer[])
"""
DOCUMENTS_TO_SPLIT: Final[LiteralString] = """
/* textsim-db: documents of corpus {id} to split */
SELECT d.id, d.key FROM {document} d
WHERE (%(language)s::text IS NULL OR d.language = %(language)s)
    AND (%(part)s::bigint IS NULL OR d.part = %(part)s){alive}
ORDER BY d.key COLLATE "C"
"""
KEYS_OF_IDS: Final[LiteralString] = """
/* textsim-db: pairs of corpus {id}: keys */
SELECT id, key FROM {document} WHERE id = ANY (%s::integer[])
"""

# Judgements.

SAME_PAIRS: Final[LiteralString] = """
/* textsim-db: judgements of corpus {id} */
SELECT d.id, e.id
FROM textsim._same_pairs(%s, %s, %s) p
JOIN {document} d ON d.key = p.a JOIN {document} e ON e.key = p.b
"""
DIFFERENT_PAIRS: Final[LiteralString] = """
/* textsim-db: judgements of corpus {id} */
SELECT d.id, e.id
FROM textsim._different_pairs(%s) p
JOIN {document} d ON d.key = p.a JOIN {document} e ON e.key = p.b
"""
DIFFERENT_KEYS: Final[LiteralString] = """
/* textsim-db: pairs judged different */
SELECT j.a, j.b FROM textsim._obeyed_judgements(%s) j WHERE j.verdict = 'different'
"""
# Also stale pairs: texts of a batch are not stored yet.
DIFFERENT_TEXTS: Final[LiteralString] = """
/* textsim-db: pairs judged different */
SELECT j.a, j.b, j.hash_a::text, j.hash_b::text,
    textsim._document_hash(j.origin, j.a)::text, textsim._document_hash(j.origin, j.b)::text
FROM textsim.judgement j
WHERE j.origin = %(origin)s AND j.verdict = 'different'
    AND (j.a = ANY (%(keys)s::text[]) OR j.b = ANY (%(keys)s::text[]))
"""
LISTED_KEYS: Final[LiteralString] = """
/* textsim-db: keys of corpus {id} */
SELECT d.key, (SELECT s.relation::text FROM textsim.source s WHERE s.id = d.source_id),
    d.scope, d.language, coalesce(d.cluster_size, 1)
FROM {document} d
WHERE starts_with(d.key, %(prefix)s)
    AND (%(source)s::text IS NULL OR d.source_id IN (
        SELECT s.id FROM textsim.source s
        WHERE s.corpus_id = {id} AND s.relation::oid = %(source)s::text::regclass::oid))
    AND (%(scope)s::text IS NULL OR d.scope = %(scope)s)
    AND (%(language)s::text IS NULL OR d.language = %(language)s){alive}
ORDER BY d.key COLLATE "C"
"""
RECORDS_OF_KEYS: Final[LiteralString] = """
SELECT d.key, coalesce(d.cluster_size, 1) FROM {document} d WHERE d.key = ANY (%s::text[]){unexpired}
"""
JUDGED_DOCUMENTS: Final[LiteralString] = """
/* textsim-db: judged documents of corpus {id} */
SELECT d.key, d.part, textsim._document_hash(%s, d.key)::text
FROM {document} d WHERE d.key = ANY (%s::text[]){alive}
"""
CLUSTER_SIZES: Final[LiteralString] = """
SELECT d.key, d.cluster_size, coalesce(d.counted_keys, '{{}}') FROM {document} d
WHERE d.key = ANY (%s::text[]) AND d.cluster_size IS NOT NULL
"""
FORCED_KEYS: Final[LiteralString] = """
/* textsim-db: forced and rejected documents of corpus {id} */
SELECT key FROM {document} WHERE forced OR rejected IS NOT NULL
"""

# Documents by their keys.

COUNT_DOCUMENTS: Final[LiteralString] = """
/* textsim-db: count the documents of corpus {id} */ SELECT count(*) FROM {document} d WHERE true{alive}
"""
HAS_DOCUMENT: Final[LiteralString] = (
    "SELECT EXISTS (SELECT FROM {document} d WHERE d.key = %s{alive})"
)
REJECTIONS: Final[LiteralString] = """
SELECT d.key, d.rejected FROM {document} d WHERE d.key = ANY (%s::text[]) AND d.rejected IS NOT NULL
"""
TRAITS_OF_KEYS: Final[LiteralString] = """
/* textsim-db: languages, scopes, tables and guards of documents of corpus {id} */
SELECT d.key, d.language, d.scope, d.source_id, d.guard FROM {document} d WHERE d.key = ANY (%s){alive}
"""
DOCUMENTS_OF_KEYS: Final[LiteralString] = f"""
/* textsim-db: documents of corpus {{id}} by their keys */
SELECT {TO_COMPARE}, d.source_id FROM {{document}} d WHERE d.key = ANY (%s){{alive}}
"""

IDS_OF_KEYS: Final[LiteralString] = """
SELECT d.id FROM {document} d WHERE d.key = ANY (%s::text[]){alive} ORDER BY d.id
"""

# Members of a cluster, to compare.

MEMBERS_TO_COMPARE: Final[LiteralString] = """
/* textsim-db: words of members of corpus {id} */
SELECT id, key, pg_catalog.array_send(word_ids), normal_form FROM {document} WHERE id = ANY (%s)
"""

# Searches that the server computes.

QUERY_ON_SERVER: Final[LiteralString] = (
    "SELECT m.key, m.similarity, m.differs FROM textsim.matches(%s, %s, %s, %s, scope => %s) m"
)
NEAREST_ON_SERVER: Final[LiteralString] = (
    "SELECT m.key, m.similarity, m.differs FROM textsim.nearest(%s, %s, %s, scope => %s) m"
)
NEIGHBOURS_ON_SERVER: Final[LiteralString] = (
    "SELECT m.key, m.similarity, m.differs FROM textsim.neighbours(%s, %s, %s, %s) m"
)
DISTINCT_ON_SERVER: Final[LiteralString] = """
SELECT r.key, r.rank, r.copies FROM textsim.distinct_of(%s, %s, %s, %s, %s, %s) r ORDER BY r.rank
"""
# The shingles and the signature of a longer document are NULL: kernels compute them sooner.
SIDE_ON_SERVER: Final[LiteralString] = """
SELECT f.form, textsim._shingles_of_form(f.short, c.unit, c.shingle_length),
    textsim._sketch(textsim._shingle_values(f.short, c.unit, c.shingle_length), c.num_hashes, c.base)
FROM textsim.corpus c
JOIN {document} d ON d.key = %s{alive}
CROSS JOIN LATERAL (SELECT textsim._stored_form(c.id, d.word_ids, d.normal_form) OFFSET 0) s (form)
CROSS JOIN LATERAL (
    SELECT s.form, CASE WHEN pg_catalog.length(s.form) <= %s THEN s.form END OFFSET 0) f (form, short)
WHERE c.id = {id}
"""
HAS_WORDS: Final[LiteralString] = "SELECT textsim._form(textsim._corpus(%s::text), %s) <> ''"
