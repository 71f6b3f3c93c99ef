"""The SQL statements of this package, grouped by task.

A bucket needs no column for its band, because the number of the band seeds the bucket's hash. A
statement that may run for long begins with a comment, which pg_stat_activity shows.
"""

from __future__ import annotations

from typing import Final, LiteralString, NamedTuple

_WORDS: Final[LiteralString] = """d.id, d.key, d.shingle_count,
    pg_catalog.array_send(d.word_ids), d.normal_form, d.scope"""
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
WHERE textsim._is_candidate(c.shared, d.shingle_count, %s, %s){alive}
"""


def _candidates_of_one(table: LiteralString, column: LiteralString) -> LiteralString:
    """Return the statement that finds the documents with one of some values of a table."""
    return f"""
SELECT {_FIELDS}
FROM (
    SELECT b.document_id
    FROM pg_catalog.unnest(%s::integer[]) q (value)
    JOIN {table} b ON b.{column} = q.value
    GROUP BY b.document_id
) c
JOIN {{document}} d ON d.id = c.document_id
WHERE true{{alive}}
"""


def _candidates_of_many(table: LiteralString, column: LiteralString) -> LiteralString:
    """Return the statement that finds the documents with one of the values of each query."""
    return f"""
/* textsim-db: candidates of many texts in corpus {{id}} */
SELECT {_FIELDS}, pg_catalog.array_send(c.queries)
FROM (
    SELECT p.document_id, pg_catalog.array_agg(p.query) AS queries
    FROM (
        SELECT b.document_id, q.query
        FROM unnest(%s::integer[], %s::integer[]) q (query, value)
        JOIN {table} b ON b.{column} = q.value
        GROUP BY b.document_id, q.query
    ) p
    GROUP BY p.document_id
) c
JOIN {{document}} d ON d.id = c.document_id
WHERE true{{alive}}
"""


CANDIDATES_OF_ONE: Final = _candidates_of_one("{band}", "bucket")
CANDIDATES_OF_MANY: Final = _candidates_of_many("{band}", "bucket")
PASSAGE_CANDIDATES_OF_ONE: Final = _candidates_of_one("{passage}", "fingerprint")
PASSAGE_CANDIDATES_OF_MANY: Final = _candidates_of_many("{passage}", "fingerprint")
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
WHERE textsim._is_candidate(c.shared, d.shingle_count, %s, %s){{alive}}
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
WHERE true{{alive}}
"""
OF_LANGUAGE: Final[LiteralString] = " AND d.language = %s"
OF_SCOPE: Final[LiteralString] = " AND d.scope = %s"
"""Limit the statements above to the documents of one language, or of one scope."""

DOCUMENT_OF_KEY: Final[LiteralString] = (
    f"SELECT {_FIELDS} FROM {{document}} d WHERE d.key = %s{{alive}}"
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
BAND_ROWS_OF_SCOPE: Final[LiteralString] = """
/* textsim-db: pairs of corpus {id}: band rows of a scope */
SELECT pg_catalog.array_send(pg_catalog.array_agg(
    (b.bucket::bigint << 32) + 2147483648 + d.id))
FROM {document} d
CROSS JOIN LATERAL pg_catalog.unnest(
    textsim._in_scope(textsim._buckets(d.signature, %(bands)s, %(rows)s), d.scope)) b (bucket)
WHERE b.bucket BETWEEN %(low)s::integer AND %(high)s::integer AND d.scope = %(scope)s
    AND (%(language)s::text IS NULL OR d.language = %(language)s)
"""
EXPIRED_DOCUMENTS: Final[LiteralString] = """
/* textsim-db: pairs of corpus {id}: expired documents */
SELECT pg_catalog.array_send(pg_catalog.array_agg(d.id ORDER BY d.id))
FROM {document} d WHERE d.expires_at <= pg_catalog.now()
"""
HIGHEST_ID: Final[LiteralString] = "SELECT coalesce(max(d.id), 0) FROM {document} d"
SCOPES_OF_IDS: Final[LiteralString] = """
/* textsim-db: pairs of corpus {id}: scopes */
SELECT d.scope COLLATE "C", pg_catalog.array_send(pg_catalog.array_agg(d.id))
FROM {document} d WHERE d.id = ANY (%s) GROUP BY 1
"""
# Different words may have the same hash, because hash_array_extended() folds the hash of each element
# to 32 bits.
HASHES_OF_WORDS: Final[LiteralString] = """
/* textsim-db: pairs of corpus {id}: hashes of words */
SELECT pg_catalog.array_send(pg_catalog.array_agg(d.id)),
    pg_catalog.array_send(pg_catalog.array_agg(coalesce(
        pg_catalog.hash_array_extended(d.word_ids, 0),
        pg_catalog.hashtextextended(d.normal_form, 0)) # textsim._scope_hash(d.scope)))
FROM {document} d WHERE d.id = ANY (%s::integer[])
"""
COPIES: Final[LiteralString] = """
/* textsim-db: pairs of corpus {id}: copies */
SELECT pg_catalog.array_send(pg_catalog.array_agg(d.id))
FROM {document} d WHERE d.id = ANY (%s::integer[])
GROUP BY d.word_ids, d.normal_form, d.scope HAVING count(*) > 1
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
COMMON_FINGERPRINTS: Final[LiteralString] = """
SELECT pg_catalog.array_send(ARRAY(
    SELECT q.fingerprint FROM pg_catalog.unnest(%s::integer[]) q (fingerprint)
    WHERE (SELECT count(*) FROM (
        SELECT FROM {passage} p WHERE p.fingerprint = q.fingerprint LIMIT %s::bigint + 1) s) > %s))
"""
COUNT_DOCUMENTS_OF_FINGERPRINT: Final[LiteralString] = """
SELECT count(*) FROM (SELECT FROM {passage} p WHERE p.fingerprint = %s::integer LIMIT 100000) s
"""
SHARED_FINGERPRINTS: Final[LiteralString] = """
/* textsim-db: shared passages of corpus {id} */
SELECT x.document_id, pg_catalog.array_send(pg_catalog.array_agg(DISTINCT y.document_id))
FROM {passage} x JOIN {passage} y ON y.fingerprint = x.fingerprint AND y.document_id > x.document_id
GROUP BY x.document_id
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
JUDGEMENTS: Final[LiteralString] = """
SELECT j.a, j.b, j.verdict, j.judged_by, j.judged_at, j.note FROM textsim.judgements(%s) j
"""
CONTRADICTIONS: Final[LiteralString] = """
SELECT c.a, c.b, c.chain FROM textsim.contradictions(%s) c
"""

FORCED_KEYS: Final[LiteralString] = """
/* textsim-db: forced documents of corpus {id} */ SELECT key FROM {document} WHERE forced
"""

# Recall by brute force: a sample is compared with all documents.

IDS_WITH_SHINGLES: Final[LiteralString] = """
SELECT d.id FROM {document} d
WHERE pg_catalog.cardinality(d.signature) > 0
    AND (%(scope)s::text IS NULL OR d.scope = %(scope)s){alive}
ORDER BY d.id
"""
COUNT_AND_MEAN_WORDS: Final[LiteralString] = """
SELECT count(*), coalesce(avg(coalesce(
    pg_catalog.cardinality(d.word_ids),
    -- The words of this document have no ids yet.
    pg_catalog.cardinality(pg_catalog.string_to_array(d.normal_form, ' ')))), 0)::float8
FROM {document} d WHERE (%(scope)s::text IS NULL OR d.scope = %(scope)s){alive}
"""
SAMPLE_OF_IDS: Final[LiteralString] = f"""
SELECT {_FIELDS} FROM {{document}} d WHERE d.id = ANY (%s::integer[]) ORDER BY d.id
"""
DOCUMENTS_WITH_SHINGLES: Final[LiteralString] = f"""
SELECT {_FIELDS} FROM {{document}} d
WHERE pg_catalog.cardinality(d.signature) > 0
    AND (%(scope)s::text IS NULL OR d.scope = %(scope)s){{alive}}
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
    AND d.scope IS NOT DISTINCT FROM %s::text{alive}
GROUP BY p.query
"""

# Statistics.

_CHOSEN: Final[LiteralString] = """(%(language)s::text IS NULL OR d.language = %(language)s)
    AND (%(scope)s::text IS NULL OR d.scope = %(scope)s){alive}"""
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
SELECT key, pg_catalog.array_send(word_ids), normal_form, scope FROM {{document}}
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
/* textsim-db: statistics of corpus {{id}}: buckets of a language or a scope */
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
FROM unnest(ARRAY[{document_name}, {band_name}, {passage_name}]) t (name)
WHERE pg_catalog.to_regclass(t.name) IS NOT NULL
"""
COUNT_DOCUMENTS: Final[LiteralString] = """
/* textsim-db: count the documents of corpus {id} */ SELECT count(*) FROM {document} d WHERE true{alive}
"""
HAS_DOCUMENT: Final[LiteralString] = (
    "SELECT EXISTS (SELECT FROM {document} d WHERE d.key = %s{alive})"
)

# Integrity: these find stored rows that contradict each other.

WRONG_WORD_HASHES: Final[LiteralString] = """
/* textsim-db: check the dictionary */
SELECT w.id, w.word FROM textsim.word w WHERE w.hash <> pg_catalog.hashtextextended(w.word, 0)
"""
DOCUMENTS_TO_CHECK: Final[LiteralString] = """
SELECT d.key, d.shingle_count, pg_catalog.array_send(d.word_ids), pg_catalog.array_send(d.signature),
    d.normal_form, d.language, pg_catalog.array_send(d.fingerprints)
FROM {document} d
"""
TRACKED_DOCUMENTS_TO_CHECK: Final[LiteralString] = """
SELECT d.key, d.shingle_count, pg_catalog.array_send(d.word_ids), pg_catalog.array_send(d.signature),
    d.normal_form, d.language, pg_catalog.array_send(d.fingerprints), d.id, d.scope, n.node, EXISTS (
        SELECT FROM textsim.node_{id} o WHERE o.node = n.node AND o.document_id <> n.document_id)
FROM {document} d LEFT JOIN textsim.node_{id} n ON n.document_id = d.id
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
BUCKETS_OF_BANDS: Final[LiteralString] = """
    SELECT d.id, (pg_catalog.hash_array_extended(
        d.signature[j * %(rows)s + 1:(j + 1) * %(rows)s], j) << 32 >> 32)::integer AS bucket
    FROM {document} d CROSS JOIN pg_catalog.generate_series(0, %(bands)s - 1) j
    WHERE pg_catalog.cardinality(d.signature) > 0"""
BUCKETS_OF_VALUES: Final[LiteralString] = """
    SELECT d.id, u.bucket FROM {document} d CROSS JOIN LATERAL unnest(d.signature) u (bucket)
    WHERE true"""
"""The buckets that signatures give, in a corpus of bands and in an exact one."""
BUCKETS_IN_SCOPES: Final[LiteralString] = """
    SELECT d.id, u.bucket FROM {document} d CROSS JOIN LATERAL pg_catalog.unnest(
        textsim._in_scope(textsim._buckets(d.signature, %(bands)s, %(rows)s), d.scope)) u (bucket)
    WHERE true"""
"""The buckets that signatures give in a scoped corpus."""


FINGERPRINTS: Final[LiteralString] = """
    SELECT d.id, u.fingerprint FROM {document} d CROSS JOIN LATERAL pg_catalog.unnest(
        textsim._in_scope(d.fingerprints, d.scope)) u (fingerprint)
    WHERE true"""
"""The fingerprints of documents, as their rows have them."""


class RowsToCheck(NamedTuple):
    """The statements that compare a table of rows, each a value and a document, with the documents."""

    noun: str
    """The word for one row."""
    column: str
    """The word for its value."""
    sums_of_stored: LiteralString
    """One sum of hashes for the rows of neighbouring ids, which needs no sorting."""
    sums_of_documents: LiteralString
    """The same sums of the rows that follow from the documents."""
    wrong: LiteralString
    """The rows that are missing, a positive count, or extra, a negative count."""


def band_rows(buckets: LiteralString) -> RowsToCheck:
    """Return the statements for the band rows; buckets: a query for those that signatures give."""
    return _rows_to_check("band row", "bucket", "{band}", buckets)


def _rows_to_check(
    noun: LiteralString, column: LiteralString, table: LiteralString, expected: LiteralString
) -> RowsToCheck:
    """Return the statements for a table; expected: a query for the id and the value of each row.

    The seed of the hashes is secret, so nobody can prepare other rows with the same sum. Both sides are
    multisets.
    """
    return RowsToCheck(
        noun,
        column,
        f"""
/* textsim-db: check corpus {{id}}: {noun}s */
SELECT document_id >> %(bits)s, count(*), sum(pg_catalog.hashint4extended(
    {column}, pg_catalog.hashint4extended(document_id, %(seed)s)))
FROM {table} GROUP BY 1
""",
        f"""
/* textsim-db: check corpus {{id}}: {noun}s of documents */
SELECT b.id >> %(bits)s, count(*), sum(pg_catalog.hashint4extended(
    b.{column}, pg_catalog.hashint4extended(b.id, %(seed)s)))
FROM ({expected}
) b GROUP BY 1
""",
        f"""
/* textsim-db: check corpus {{id}}: wrong {noun}s */
SELECT b.id, d.key, b.{column}, sum(b.sign)
FROM (
    SELECT document_id AS id, {column}, -1 AS sign FROM {table}
    WHERE document_id >> %(bits)s = ANY (%(blocks)s::integer[])
    UNION ALL
    SELECT c.id, c.{column}, 1
    FROM ({expected} AND d.id >> %(bits)s = ANY (%(blocks)s::integer[])
    ) c
) b
LEFT JOIN {{document}} d ON d.id = b.id
GROUP BY b.id, d.key, b.{column}
HAVING sum(b.sign) <> 0
""",
    )


PASSAGE_ROWS: Final = _rows_to_check("fingerprint", "fingerprint", "{passage}", FINGERPRINTS)
"""The statements for the fingerprints."""


# Integrity of the installation: the catalog against what was installed, and the tables of all corpora.

WRONG_OBJECTS: Final[LiteralString] = """
SELECT i.kind, i.name, i.definition, c.definition
FROM textsim.installed i
LEFT JOIN textsim._catalog() c ON c.kind = i.kind AND c.name = i.name
WHERE c.definition IS DISTINCT FROM i.definition
ORDER BY pg_catalog.array_position(
    '{table,column,constraint,index,sequence,function,view}'::text[], i.kind), i.name
"""
IS_RECORDED: Final[LiteralString] = "SELECT EXISTS (SELECT FROM textsim.installed)"
UNOWNED_OBJECTS: Final[LiteralString] = """
SELECT c.oid::regclass::text, 'corpus', n.id
FROM pg_catalog.pg_class c
CROSS JOIN LATERAL (SELECT pg_catalog.substring(c.relname, '[0-9]+$')::integer) n (id)
WHERE c.relnamespace = 'textsim'::regnamespace AND c.relkind = 'r'
    AND c.relname ~ '_[0-9]+$'
    AND NOT EXISTS (SELECT FROM textsim.corpus k WHERE k.id = n.id)
UNION ALL
SELECT p.oid::regprocedure::text, 'source', n.id
FROM pg_catalog.pg_proc p
CROSS JOIN LATERAL (SELECT pg_catalog.substring(p.proname, '[0-9]+$')::integer) n (id)
WHERE p.pronamespace = 'textsim'::regnamespace AND p.proname ~ '^_(changes|filter)_[0-9]+$'
    AND NOT EXISTS (SELECT FROM textsim.source s WHERE s.id = n.id AND s.active)
ORDER BY 1
"""
# Only roles that may use a sequence can read its last value. Ids that were given out but not committed
# are above the largest id, never below it.
SHARED_SEQUENCES: Final[LiteralString] = """
SELECT s.name, s.used, pg_catalog.has_sequence_privilege(s.name, 'SELECT, USAGE'),
    CASE WHEN pg_catalog.has_sequence_privilege(s.name, 'SELECT, USAGE')
        THEN coalesce(pg_catalog.pg_sequence_last_value(s.name::regclass), 0) END
FROM (VALUES
    ('textsim.corpus_id_seq', (SELECT max(id)::bigint FROM textsim.corpus)),
    ('textsim.word_id_seq', (SELECT max(id)::bigint FROM textsim.word)),
    ('textsim.source_id_seq', (SELECT max(id)::bigint FROM textsim.source)),
    ('textsim.pending_id_seq', (SELECT max(id) FROM textsim.pending))
) s (name, used)
WHERE pg_catalog.to_regclass(s.name) IS NOT NULL
"""
# No worker claims the entries of an unknown table, or entries that are leased for longer than a worker
# leases them.
STUCK_ENTRIES: Final[LiteralString] = """
SELECT count(*) FILTER (WHERE u.is_unknown), count(*) FILTER (WHERE u.is_held)
FROM (
    SELECT p.source_id IS NOT NULL AND s.id IS NULL
            OR p.source_id IS NULL
            AND NOT EXISTS (SELECT FROM textsim.corpus c WHERE c.id = p.corpus_id),
        p.lease_until > pg_catalog.now() + interval '1 day'
    FROM textsim.pending p LEFT JOIN textsim.source s ON s.id = p.source_id
) u (is_unknown, is_held)
"""

# Integrity of a corpus: its settings, and its tables, indexes and functions against what would be
# created now.

CHANGED_SETTINGS: Final[LiteralString] = """
SELECT c.created_with <> '{{}}', s.name, pg_catalog.left(s.value::text, 60),
    pg_catalog.left((c.created_with -> s.name)::text, 60)
FROM textsim.corpus c CROSS JOIN LATERAL pg_catalog.jsonb_each(textsim._settings(c)) s (name, value)
-- A later version may have more settings than the version that created the corpus.
WHERE c.id = {id} AND (c.created_with = '{{}}' OR s.value <> c.created_with -> s.name)
"""
RELATIONS_OF_CORPUS: Final[LiteralString] = """
SELECT r.kind, r.name, r.statement, o.oid IS NOT NULL,
    CASE WHEN r.kind = 'index' THEN pg_catalog.pg_get_indexdef(o.oid) END,
    i.indisvalid AND i.indisready, o.relpersistence = 'p', o.relrowsecurity
FROM textsim.corpus c
CROSS JOIN LATERAL (
    SELECT r.kind, r.name, r.statement FROM textsim._corpus_relations(c) r
    UNION ALL SELECT r.kind, r.name, r.statement
    FROM textsim.tracked t CROSS JOIN LATERAL textsim._tracking_relations(t.corpus_id) r
    WHERE t.corpus_id = c.id
) r
LEFT JOIN pg_catalog.pg_class o
    ON o.oid = pg_catalog.to_regclass(pg_catalog.format('textsim.%I', r.name))
LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = o.oid
WHERE c.id = {id}
ORDER BY pg_catalog.array_position('{{table,index,sequence}}'::text[], r.kind), r.name
"""
# Columns and constraints of a pattern, with those of the table that was made from it. In an exact corpus
# the signature has another type, and in a scoped corpus each document has a scope.
COLUMNS_OF_CORPUS: Final[LiteralString] = """
SELECT pg_catalog.format('textsim.%I', t.name), p.attname, e.type, e.is_not_null,
    pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull
FROM textsim.corpus c
CROSS JOIN LATERAL (
    SELECT p.relname, p.relname || '_' || c.id FROM pg_catalog.pg_class p
    WHERE p.relnamespace = 'textsim'::regnamespace AND p.relkind = 'r'
) t (pattern, name)
JOIN pg_catalog.pg_attribute p ON p.attrelid = pg_catalog.to_regclass('textsim.' || t.pattern)
    AND p.attnum > 0 AND NOT p.attisdropped
CROSS JOIN LATERAL (
    SELECT CASE WHEN p.attname = 'signature' AND c.bands IS NULL THEN 'integer[]'
        ELSE pg_catalog.format_type(p.atttypid, p.atttypmod) END,
        p.attnotnull OR p.attname = 'scope' AND c.scoped
) e (type, is_not_null)
LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = pg_catalog.to_regclass('textsim.' || t.name)
    AND a.attname = p.attname AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.id = {id} AND pg_catalog.to_regclass('textsim.' || t.name) IS NOT NULL
    AND (pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull)
        IS DISTINCT FROM (e.type, e.is_not_null)
"""
CONSTRAINTS_OF_CORPUS: Final[LiteralString] = """
SELECT pg_catalog.format('textsim.%I', t.name), p.conname, pg_catalog.pg_get_constraintdef(p.oid)
FROM (
    SELECT p.relname, p.relname || '_' || {id} FROM pg_catalog.pg_class p
    WHERE p.relnamespace = 'textsim'::regnamespace AND p.relkind = 'r'
) t (pattern, name)
JOIN pg_catalog.pg_constraint p ON p.conrelid = pg_catalog.to_regclass('textsim.' || t.pattern)
    AND p.contype = 'c'
WHERE pg_catalog.to_regclass('textsim.' || t.name) IS NOT NULL AND NOT EXISTS (
    SELECT FROM pg_catalog.pg_constraint a
    WHERE a.conrelid = pg_catalog.to_regclass('textsim.' || t.name) AND a.contype = 'c'
        AND pg_catalog.pg_get_constraintdef(a.oid) = pg_catalog.pg_get_constraintdef(p.oid))
"""
# The body of a function, its volatility and its settings, as the filled template states them.
FUNCTIONS_OF_CORPUS: Final[LiteralString] = """
SELECT f.name, EXISTS (
    SELECT FROM pg_catalog.pg_proc o
    WHERE o.pronamespace = 'textsim'::regnamespace AND o.proname = f.name)
FROM textsim.corpus c
CROSS JOIN LATERAL textsim._corpus_functions(c) f
CROSS JOIN LATERAL (
    SELECT pg_catalog.substring(f.statement, '^(.*?)\\nAS [$][$]'),
        pg_catalog.substring(f.statement, '\\nAS [$][$](.*)[$][$];')
) e (head, body)
CROSS JOIN LATERAL (
    SELECT pg_catalog.array_agg(m[1] || '=' || m[2])
    FROM pg_catalog.regexp_matches(e.head, '\\nSET (\\w+) = ([^\\n]+)', 'g') m
) s (settings)
WHERE c.id = {id} AND NOT EXISTS (
    SELECT FROM pg_catalog.pg_proc p
    WHERE p.pronamespace = 'textsim'::regnamespace AND p.proname = f.name AND p.prosrc = e.body
        AND p.proconfig @> s.settings AND p.proconfig <@ s.settings
        AND p.provolatile = CASE WHEN e.head ~ 'VOLATILE' THEN 'v' ELSE 's' END::"char")
UNION ALL
SELECT f.name, o.oid IS NOT NULL
FROM textsim.tracked t
CROSS JOIN LATERAL textsim._tracking_functions(t.corpus_id) f
JOIN pg_catalog.pg_proc p ON p.oid = f.pattern
LEFT JOIN pg_catalog.pg_proc o ON o.pronamespace = p.pronamespace AND o.proname = f.name
WHERE t.corpus_id = {id}
    AND (o.prosrc, o.proconfig, o.provolatile) IS DISTINCT FROM (f.body, p.proconfig, p.provolatile)
"""
TRIGGER_FUNCTIONS: Final[LiteralString] = """
SELECT s.id, pg_catalog.format('%I.%I', n.nspname, r.relname), p.oid IS NULL
FROM textsim.source s
JOIN pg_catalog.pg_class r ON r.oid = s.relation
JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace
LEFT JOIN pg_catalog.pg_proc p ON p.oid = textsim._trigger_function(s.id)
WHERE s.corpus_id = {id} AND s.active AND (
    p.oid IS NULL OR p.prosrc <> textsim._trigger_body(s) OR NOT p.prosecdef OR p.provolatile <> 'v'
    OR NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (p.proconfig), false)
    OR pg_catalog.has_function_privilege('public', p.oid, 'EXECUTE'))
"""
PASSAGE_TRIGGERS: Final[LiteralString] = """
SELECT g.relation, g.name, g.statement
FROM textsim.corpus c CROSS JOIN LATERAL textsim._passage_triggers(c) g
WHERE c.id = {id} AND NOT EXISTS (
    SELECT FROM pg_catalog.pg_trigger o
    WHERE o.tgrelid = pg_catalog.to_regclass('textsim.' || g.relation) AND o.tgname = g.name
        AND o.tgenabled IN ('O', 'A') AND o.tgfoid = 'textsim._write_passage_rows'::pg_catalog.regproc)
"""
TRACKING_TRIGGERS: Final[LiteralString] = """
SELECT g.relation, g.name
FROM textsim.tracked t CROSS JOIN LATERAL textsim._tracking_triggers(t.corpus_id) g
WHERE t.corpus_id = {id} AND NOT EXISTS (
    SELECT FROM pg_catalog.pg_trigger o
    WHERE o.tgrelid = pg_catalog.to_regclass('textsim.' || g.relation) AND o.tgname = g.name
        AND o.tgenabled IN ('O', 'A') AND o.tgfoid = ('textsim.' || g.function)::pg_catalog.regproc)
"""
SEQUENCE_OF_CORPUS: Final[LiteralString] = """
SELECT {sequence_name}, (SELECT max(id) FROM {document}),
    pg_catalog.has_sequence_privilege({sequence_name}, 'SELECT, USAGE'),
    CASE WHEN pg_catalog.has_sequence_privilege({sequence_name}, 'SELECT, USAGE')
        THEN coalesce(pg_catalog.pg_sequence_last_value({sequence_name}::regclass), 0) END
"""

# Integrity of a tracked corpus: its nodes follow from the documents, its matches from the nodes, and its
# clusters from the matches. Documents that the log names are excused.

TRACKED: Final[LiteralString] = (
    "SELECT t.linkage, t.threshold FROM textsim.tracked t WHERE t.corpus_id = {id}"
)
TRACKING_SEQUENCES: Final[LiteralString] = """
SELECT s.name, s.used, pg_catalog.has_sequence_privilege(s.name, 'SELECT, USAGE'),
    CASE WHEN pg_catalog.has_sequence_privilege(s.name, 'SELECT, USAGE')
        THEN coalesce(pg_catalog.pg_sequence_last_value(s.name::regclass), 0) END
FROM (VALUES
    ('textsim.node_' || {id} || '_id_seq', (SELECT max(n.node)::bigint FROM textsim.node_{id} n)),
    ('textsim.cluster_id_seq', greatest(
        (SELECT max(c.id) FROM textsim.cluster_{id} c),
        (SELECT max(a.old) FROM textsim.cluster_alias_{id} a),
        (SELECT max(e.id) FROM textsim.cluster_event_{id} e)))
) s (name, used)
"""
# The subject, the detail, and the documents to compute anew. The log excuses documents; the last two
# branches compare nodes with each other.
WRONG_NODES: Final[LiteralString] = """
/* textsim-db: check corpus {id}: nodes */
SELECT d.key, CASE WHEN n.node IS NULL THEN 'it has no node' ELSE 'it has no words, and a node' END,
    ARRAY[d.id]
FROM {document} d LEFT JOIN textsim.node_{id} n ON n.document_id = d.id
WHERE d.id = ANY (%(suspects)s::integer[])
    AND d.id NOT IN (SELECT pg_catalog.unnest(textsim._logged_ids({id})))
    AND textsim._has_node(
        (SELECT coalesce(c.origin, c.id) FROM textsim.corpus c WHERE c.id = {id}),
        d.shingle_count, d.key) = (n.node IS NULL)
UNION ALL
SELECT 'document ' || n.document_id, 'it was removed, and has a node', ARRAY[n.document_id]
FROM textsim.node_{id} n
WHERE NOT EXISTS (SELECT FROM {document} d WHERE d.id = n.document_id)
    AND n.document_id NOT IN (SELECT pg_catalog.unnest(textsim._logged_ids({id})))
UNION ALL
SELECT 'node ' || s.node, 'its documents have different shingles', s.ids
FROM (
    SELECT n.node, pg_catalog.array_agg(d.id ORDER BY d.id) AS ids,
        count(DISTINCT coalesce(d.scope, '')) AS scopes
    FROM textsim.node_{id} n JOIN {document} d ON d.id = n.document_id
    WHERE n.node IN (
            SELECT o.node FROM textsim.node_{id} o WHERE o.document_id = ANY (%(suspects)s::integer[]))
        AND d.id NOT IN (SELECT pg_catalog.unnest(textsim._logged_ids({id})))
    GROUP BY n.node HAVING count(*) > 1
) s
CROSS JOIN LATERAL (
    SELECT count(*) AS copies FROM textsim._verify_pairs(
        (SELECT c FROM textsim.corpus c WHERE c.id = {id}),
        pg_catalog.array_fill(s.ids[1], ARRAY[pg_catalog.cardinality(s.ids) - 1]), s.ids[2:], 1)
) e
WHERE s.scopes > 1 OR e.copies < pg_catalog.cardinality(s.ids) - 1
"""
MATCHES_WITHOUT_NODES: Final[LiteralString] = """
SELECT 'node ' || m.a, 'it matches node ' || m.b || ', and one of them has no documents', ARRAY(
    SELECT n.document_id FROM textsim.node_{id} n WHERE n.node IN (m.a, m.b))
FROM textsim.match_{id} m
WHERE NOT EXISTS (SELECT FROM textsim.node_{id} n WHERE n.node = m.a)
    OR NOT EXISTS (SELECT FROM textsim.node_{id} n WHERE n.node = m.b)
UNION ALL
SELECT 'node ' || k.node, 'it is crowded, and has no documents', '{{}}'::integer[]
FROM textsim.crowded_{id} k
WHERE NOT EXISTS (SELECT FROM textsim.node_{id} n WHERE n.node = k.node)
"""
# The documents that the log does not name, sorted, and their nodes.
NODES_OF_DOCUMENTS: Final[LiteralString] = """
/* textsim-db: check corpus {id}: nodes of documents */
SELECT pg_catalog.array_send(pg_catalog.array_agg(n.document_id ORDER BY n.document_id)),
    pg_catalog.array_send(pg_catalog.array_agg(n.node ORDER BY n.document_id))
FROM textsim.node_{id} n
WHERE n.document_id NOT IN (SELECT pg_catalog.unnest(textsim._logged_ids({id})))
"""
JUDGED_NODES: Final[LiteralString] = """
SELECT DISTINCT n.node FROM textsim.corpus c
JOIN textsim.judgement j ON j.origin = coalesce(c.origin, c.id) AND j.verdict <> 'unsure'
JOIN {document} d ON d.key IN (j.a, j.b)
JOIN textsim.node_{id} n ON n.document_id = d.id
WHERE c.id = {id}
"""
STORED_MATCHES: Final[LiteralString] = """
/* textsim-db: check corpus {id}: stored matches */
SELECT pg_catalog.array_send(pg_catalog.array_agg(m.a)),
    pg_catalog.array_send(pg_catalog.array_agg(m.b)),
    pg_catalog.array_send(pg_catalog.array_agg(m.similarity))
FROM textsim.match_{id} m
"""
CROWDED_NODES: Final[LiteralString] = """
SELECT textsim._most_compared(), ARRAY(SELECT k.node FROM textsim.crowded_{id} k)
"""
# A match is excused if each of the documents of one of its nodes is named by the log, or if one
# is crowded.
WRONG_MATCHES: Final[LiteralString] = """
/* textsim-db: check corpus {id}: matches */
WITH stored AS MATERIALIZED (
    SELECT m.a, m.b, m.similarity FROM textsim.match_{id} m
    WHERE m.a = ANY (%(nodes)s::integer[]) OR m.b = ANY (%(nodes)s::integer[])
), found AS MATERIALIZED (
    SELECT f.a, f.b, f.similarity
    FROM textsim._find_links_{id}(
        (SELECT c FROM textsim.corpus c WHERE c.id = {id}), %(threshold)s, %(nodes)s::integer[]) l
    CROSS JOIN LATERAL ROWS FROM (
        pg_catalog.unnest(l.lefts), pg_catalog.unnest(l.rights), pg_catalog.unnest(l.similarities)
    ) f (a, b, similarity)
)
SELECT x.key, y.key, s.similarity, f.similarity, ARRAY[x.id, y.id]
FROM stored s FULL JOIN found f ON f.a = s.a AND f.b = s.b
CROSS JOIN LATERAL (
    SELECT d.key, d.id FROM textsim.node_{id} n JOIN {document} d ON d.id = n.document_id
    WHERE n.node = coalesce(s.a, f.a)
        AND d.id NOT IN (SELECT pg_catalog.unnest(textsim._logged_ids({id})))
    ORDER BY d.id LIMIT 1
) x
CROSS JOIN LATERAL (
    SELECT d.key, d.id FROM textsim.node_{id} n JOIN {document} d ON d.id = n.document_id
    WHERE n.node = coalesce(s.b, f.b)
        AND d.id NOT IN (SELECT pg_catalog.unnest(textsim._logged_ids({id})))
    ORDER BY d.id LIMIT 1
) y
WHERE s.similarity IS DISTINCT FROM f.similarity
    AND coalesce(s.a, f.a) <> ALL (%(crowded)s::integer[])
    AND coalesce(s.b, f.b) <> ALL (%(crowded)s::integer[])
"""
WRONG_CLUSTERS: Final[LiteralString] = """
/* textsim-db: check corpus {id}: clusters */
WITH changed AS MATERIALIZED (
    SELECT DISTINCT m.cluster FROM textsim.pending p
    CROSS JOIN LATERAL pg_catalog.unnest(p.document_ids) i (id)
    JOIN textsim.member_{id} m ON m.document_id = i.id
    WHERE p.corpus_id = {id} AND p.document_ids IS NOT NULL
), expected AS MATERIALIZED (
    SELECT e.document_id, e.representative, count(*) OVER (PARTITION BY e.representative) AS size
    FROM textsim._group_nodes_{id}(
        (SELECT c FROM textsim.corpus c WHERE c.id = {id}), %(linkage)s,
        ARRAY(SELECT DISTINCT n.node FROM textsim.node_{id} n)) g
    CROSS JOIN LATERAL ROWS FROM (
        pg_catalog.unnest(g.documents), pg_catalog.unnest(g.representatives)
    ) e (document_id, representative)
), stored AS (
    SELECT m.document_id, m.cluster, c.representative, c.size
    FROM textsim.member_{id} m LEFT JOIN textsim.cluster_{id} c ON c.id = m.cluster
)
SELECT coalesce(d.key, 'document ' || coalesce(s.document_id, e.document_id)),
    'its cluster is not that of its matches', ARRAY[coalesce(s.document_id, e.document_id)]
FROM stored s
FULL JOIN (SELECT e.* FROM expected e WHERE e.size > 1) e ON e.document_id = s.document_id
LEFT JOIN {document} d ON d.id = coalesce(s.document_id, e.document_id)
WHERE (s.representative, s.size) IS DISTINCT FROM (e.representative, e.size)
    AND (s.cluster IS NULL OR s.cluster NOT IN (SELECT k.cluster FROM changed k))
UNION ALL
SELECT 'cluster ' || c.id, 'it has no members', ARRAY[c.representative] FROM textsim.cluster_{id} c
WHERE NOT EXISTS (SELECT FROM textsim.member_{id} m WHERE m.cluster = c.id)
"""
WRONG_ALIASES: Final[LiteralString] = """
SELECT 'cluster ' || a.old, 'it exists, and its alias leads to cluster ' || a.new, '{{}}'::integer[]
FROM textsim.cluster_alias_{id} a JOIN textsim.cluster_{id} c ON c.id = a.old
UNION ALL
SELECT 'cluster ' || a.old, 'its alias leads to cluster ' || a.new || ', which became part of another',
    '{{}}'::integer[]
FROM textsim.cluster_alias_{id} a JOIN textsim.cluster_alias_{id} n ON n.old = a.new
UNION ALL
SELECT 'cluster ' || e.cluster, 'it became part of cluster ' || e.other || ', and has no alias',
    '{{}}'::integer[]
FROM textsim.cluster_event_{id} e
WHERE e.what = 'merged' AND NOT EXISTS (SELECT FROM textsim.cluster_alias_{id} a WHERE a.old = e.cluster)
"""

# Integrity of documents and attached tables: each row has its document, and each document its row.

UNKNOWN_SOURCES: Final[LiteralString] = """
/* textsim-db: check corpus {id}: documents of unknown tables */
SELECT d.source_id, count(*), min(d.key) FROM {document} d
WHERE d.source_id IS NOT NULL AND NOT EXISTS (
    SELECT FROM textsim.source s WHERE s.id = d.source_id AND s.corpus_id = {id})
GROUP BY d.source_id ORDER BY d.source_id
"""
# Why this role cannot read the table r of a row s of textsim.source: the conditions of
# textsim._source_fault, without the right to write.
READING_FAULT: Final[
    LiteralString
] = """CASE WHEN textsim._table_fault(s) IS NOT NULL THEN textsim._table_fault(s)
        WHEN pg_catalog.row_security_active(r.oid) THEN 'row security hides rows of it from this role'
        WHEN NOT pg_catalog.has_table_privilege(r.oid, 'SELECT')
            OR NOT pg_catalog.has_schema_privilege(n.oid, 'USAGE') THEN 'this role may not read it'
        WHEN textsim._foreign_code(r.oid) IS NOT NULL THEN textsim._foreign_code(r.oid)
            || ' calls a function of another role' END"""
# Changes that wait in the log excuse their keys, and a waiting comparison excuses the whole table.
COMPARABLE_SOURCES: Final[LiteralString] = f"""
SELECT s.id, pg_catalog.format('%I.%I', n.nspname, r.relname), n.nspname, r.relname,
    textsim._key_of(s, 't'), textsim._has_document(s, 't'), {READING_FAULT}
FROM textsim.source s
JOIN pg_catalog.pg_class r ON r.oid = s.relation
JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace
WHERE s.corpus_id = {{id}} AND s.active AND s.shape = textsim._shape(s) AND NOT EXISTS (
    SELECT FROM textsim.pending p WHERE p.source_id = s.id AND p.kind = 'compare')
ORDER BY s.id
"""
ROWS_WITHOUT_DOCUMENT: Final[LiteralString] = """
/* textsim-db: check attached tables: rows without a document */
SELECT {key} FROM {relation} t
WHERE {has_document}
    AND NOT EXISTS (
        SELECT FROM {document} d
        WHERE d.key = {key} AND d.source_id = {source}{alive})
    AND NOT EXISTS (
        SELECT FROM textsim.pending p CROSS JOIN pg_catalog.unnest(p.keys) k (key)
        WHERE p.source_id = {source} AND k.key = {key})
ORDER BY 1
"""
DOCUMENTS_WITHOUT_ROW: Final[LiteralString] = """
/* textsim-db: check attached tables: documents without a row */
SELECT d.key FROM {document} d
WHERE d.source_id = {source}{alive}
    AND NOT EXISTS (
        SELECT FROM {relation} t WHERE {key} = d.key AND {has_document})
    AND NOT EXISTS (
        SELECT FROM textsim.pending p CROSS JOIN pg_catalog.unnest(p.keys) k (key)
        WHERE p.source_id = {source} AND k.key = d.key)
ORDER BY 1
"""
REMOVE_DOCUMENT: Final[LiteralString] = (
    "SELECT textsim._remove_document(c, {source}, {key}) FROM textsim.corpus c WHERE c.id = {id}"
)

# Documents by their keys.

TRAITS_OF_KEYS: Final[LiteralString] = """
/* textsim-db: languages, scopes and tables of documents of corpus {id} */
SELECT d.key, d.language, d.scope, d.source_id FROM {document} d WHERE d.key = ANY (%s){alive}
"""
DOCUMENTS_OF_KEYS: Final[LiteralString] = f"""
/* textsim-db: documents of corpus {{id}} by their keys */
SELECT {_WORDS} FROM {{document}} d WHERE d.key = ANY (%s){{alive}}
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
IS_TRACKED: Final[LiteralString] = (
    "SELECT EXISTS (SELECT FROM textsim.tracked t WHERE t.corpus_id = %s)"
)
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
MEMBERS_TO_COMPARE: Final[LiteralString] = """
/* textsim-db: words of members of corpus {id} */
SELECT id, key, pg_catalog.array_send(word_ids), normal_form FROM {document} WHERE id = ANY (%s)
"""
IDS_OF_MEMBERS: Final[LiteralString] = "SELECT id FROM {document} WHERE key = ANY (%s)"
