"""The SQL statements of the checks, grouped by task."""

from __future__ import annotations

from typing import Final, LiteralString, NamedTuple

# Integrity: these find stored rows that contradict each other.

WRONG_WORD_HASHES: Final[LiteralString] = """
/* textsim-db: check corpus {id}: words */
SELECT w.id, w.word FROM {word} w WHERE w.hash <> pg_catalog.hashtextextended(w.word, 0)
"""
_CHECKED: Final[LiteralString] = """
SELECT d.key, d.shingle_count, pg_catalog.array_send(d.word_ids), pg_catalog.array_send(d.signature),
    d.normal_form, d.language, pg_catalog.array_send(d.fingerprints), d.guard"""
DOCUMENTS_TO_CHECK: Final[LiteralString] = f"{_CHECKED} FROM {{document}} d"
TRACKED_DOCUMENTS_TO_CHECK: Final[LiteralString] = f"""{_CHECKED}, d.id, d.part, n.node, EXISTS (
        SELECT FROM textsim.node_{{id}} o WHERE o.node = n.node AND o.document_id <> n.document_id)
FROM {{document}} d LEFT JOIN textsim.node_{{id}} n ON n.document_id = d.id
"""
# Documents that wait for a worker, and which no entry of the log names, so that no worker will come to
# them. unnest() lets the planner hash the keys; d.key = ANY (p.keys) would compare each document
# with each entry.
FORGOTTEN_DOCUMENTS: Final[LiteralString] = """
/* textsim-db: check corpus {id}: words that wait for ids */
SELECT d.key FROM {document} d
WHERE {waits} AND NOT EXISTS (
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
TABLES_OF_CORPUS: Final[LiteralString] = """
/* textsim-db: check attached tables */
SELECT FROM textsim.source WHERE corpus_id = %s LIMIT 1
"""
FORGOTTEN_WORDS: Final[LiteralString] = """
/* textsim-db: check that forgotten words are gone */
SELECT f.note FROM textsim.corpus c CROSS JOIN LATERAL textsim._forgotten_words(c) f
WHERE c.id = %s AND f.is_replaced
"""
BUCKETS_OF_BANDS: Final[LiteralString] = """
    SELECT d.id, (pg_catalog.hash_array_extended(
        d.signature[j * %(rows)s + 1:(j + 1) * %(rows)s], j) << 32 >> 32)::integer AS bucket
    FROM {document} d CROSS JOIN pg_catalog.generate_series(0, %(bands)s - 1) j
    WHERE pg_catalog.cardinality(d.signature) > 0"""
BUCKETS_OF_VALUES: Final[LiteralString] = """
    SELECT d.id, u.bucket FROM {document} d CROSS JOIN LATERAL pg_catalog.unnest(d.signature) u (bucket)
    WHERE true"""
"""The buckets that signatures give, in a corpus of bands and in an exact one."""
BUCKETS_IN_PARTS: Final[LiteralString] = """
    SELECT d.id, u.bucket FROM {document} d CROSS JOIN LATERAL pg_catalog.unnest(
        textsim._in_part(textsim._buckets(d.signature, %(bands)s, %(rows)s), d.part)) u (bucket)
    WHERE true"""
"""The buckets that signatures give in a scoped corpus."""


FINGERPRINTS: Final[LiteralString] = """
    SELECT d.id, u.fingerprint FROM {document} d CROSS JOIN LATERAL pg_catalog.unnest(
        textsim._in_part(d.fingerprints, d.part)) u (fingerprint)
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
SELECT document_id >> %(bits)s::integer, count(*), sum(pg_catalog.hashint4extended(
    {column}, pg_catalog.hashint4extended(document_id, %(seed)s)))
FROM {table} GROUP BY 1
""",
        f"""
/* textsim-db: check corpus {{id}}: {noun}s of documents */
SELECT b.id >> %(bits)s::integer, count(*), sum(pg_catalog.hashint4extended(
    b.{column}, pg_catalog.hashint4extended(b.id, %(seed)s)))
FROM ({expected}
) b GROUP BY 1
""",
        f"""
/* textsim-db: check corpus {{id}}: wrong {noun}s */
SELECT b.id, d.key, b.{column}, sum(b.sign)
FROM (
    SELECT document_id AS id, {column}, -1 AS sign FROM {table}
    WHERE document_id >> %(bits)s::integer = ANY (%(blocks)s::integer[])
    UNION ALL
    SELECT c.id, c.{column}, 1
    FROM ({expected} AND d.id >> %(bits)s::integer = ANY (%(blocks)s::integer[])
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

WRONG_OBJECTS: Final[LiteralString] = "SELECT * FROM textsim._wrong_objects()"
UNOWNED_OBJECTS: Final[LiteralString] = """
SELECT c.oid::regclass::text, 'corpus', n.id
FROM pg_catalog.pg_class c
CROSS JOIN LATERAL (SELECT pg_catalog.substring(c.relname, '[0-9]+$')::integer) n (id)
WHERE c.relnamespace = 'textsim'::regnamespace::oid AND c.relkind = 'r'
    AND c.relname::text ~ '_[0-9]+$'
    AND NOT EXISTS (SELECT FROM textsim.corpus k WHERE k.id = n.id)
UNION ALL
SELECT p.oid::regprocedure::text, 'source', n.id
FROM pg_catalog.pg_proc p
CROSS JOIN LATERAL (SELECT pg_catalog.substring(p.proname, '[0-9]+$')::integer) n (id)
WHERE p.pronamespace = 'textsim'::regnamespace::oid AND p.proname::text ~ '^_(changes|filter)_[0-9]+$'
    AND NOT EXISTS (SELECT FROM textsim.source s WHERE s.id = n.id AND s.active)
ORDER BY 1
"""


def _sequences(names_and_ids: LiteralString) -> LiteralString:
    """Return the statement for the last values of sequences; given: the name and the largest id of each.

    Only roles that may use a sequence can read its last value. Ids that were given out but not committed
    are above the largest id, never below it.
    """
    return f"""
SELECT s.name, s.used, r.is_readable,
    CASE WHEN r.is_readable THEN coalesce(pg_catalog.pg_sequence_last_value(s.name::regclass), 0) END
FROM (VALUES {names_and_ids}) s (name, used)
CROSS JOIN LATERAL (SELECT pg_catalog.has_sequence_privilege(s.name, 'SELECT, USAGE')) r (is_readable)
WHERE pg_catalog.to_regclass(s.name) IS NOT NULL
"""


SHARED_SEQUENCES: Final = _sequences("""
    ('textsim.corpus_id_seq', (SELECT max(id)::bigint FROM textsim.corpus)),
    ('textsim.source_id_seq', (SELECT max(id)::bigint FROM textsim.source)),
    ('textsim.pending_id_seq', (SELECT max(id) FROM textsim.pending))
""")

# Integrity of a corpus: its settings, and its tables, indexes and functions against what would be
# created now.

CHANGED_SETTINGS: Final[LiteralString] = """
SELECT c.created_with <> '{{}}', s.name, pg_catalog.left(s.value::text, 60),
    pg_catalog.left((c.created_with -> s.name)::text, 60)
FROM textsim.corpus c CROSS JOIN LATERAL pg_catalog.jsonb_each(textsim._settings(c)) s (name, value)
-- A later version may have more settings than the version that created the corpus.
WHERE c.id = {id} AND (c.created_with = '{{}}' OR s.value <> c.created_with -> s.name)
"""
WRONG_OBJECTS_OF_CORPUS: Final[LiteralString] = (
    "SELECT o.* FROM textsim.corpus c, LATERAL textsim._wrong_objects(c) o WHERE c.id = {id}"
)
SEQUENCES_OF_CORPUS: Final = _sequences("""
    ({sequence_name}, (SELECT max(id)::bigint FROM {document})),
    ('textsim.word_' || {id}::text || '_id_seq', (SELECT max(id)::bigint FROM {word}))
""")

# Integrity of a tracked corpus: its nodes follow from the documents, its matches from the nodes, and its
# clusters from the matches. Documents that the log names are excused.

TRACKED: Final[LiteralString] = "SELECT t.threshold FROM textsim.tracked t WHERE t.corpus_id = {id}"
TRACKING_SEQUENCES: Final = _sequences("""
    ('textsim.node_' || {id}::text || '_id_seq', (SELECT max(n.node)::bigint FROM textsim.node_{id} n)),
    ('textsim.cluster_id_seq', greatest(
        (SELECT max(c.id) FROM textsim.cluster_{id} c),
        (SELECT max(a.old) FROM textsim.cluster_alias_{id} a),
        (SELECT max(e.id) FROM textsim.cluster_event_{id} e)))
""")
# The subject and the detail. The log excuses documents; the last two
# branches compare nodes with each other.
WRONG_NODES: Final[LiteralString] = """
/* textsim-db: check corpus {id}: nodes */
SELECT d.key, CASE WHEN n.node IS NULL THEN 'it has no node' ELSE 'it has no words, and a node' END
FROM {document} d LEFT JOIN textsim.node_{id} n ON n.document_id = d.id
WHERE d.id = ANY (%(suspects)s::integer[])
    AND d.id NOT IN (SELECT pg_catalog.unnest(textsim._logged_ids({id})))
    AND (d.rejected IS NULL AND textsim._has_node(
        (SELECT textsim._origin(c) FROM textsim.corpus c WHERE c.id = {id}),
        d.shingle_count, d.key)) = (n.node IS NULL)
UNION ALL
SELECT 'document ' || n.document_id::text, 'it was removed, and has a node'
FROM textsim.node_{id} n
WHERE NOT EXISTS (SELECT FROM {document} d WHERE d.id = n.document_id)
    AND n.document_id NOT IN (SELECT pg_catalog.unnest(textsim._logged_ids({id})))
UNION ALL
SELECT 'node ' || s.node::text, 'its documents have different shingles'
FROM (
    SELECT n.node, pg_catalog.array_agg(d.id ORDER BY d.id) AS ids,
        pg_catalog.count(DISTINCT coalesce(d.part, 0)) AS parts
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
WHERE s.parts > 1 OR e.copies < pg_catalog.cardinality(s.ids) - 1
"""
MATCHES_WITHOUT_NODES: Final[LiteralString] = """
SELECT 'node ' || m.a::text, 'it matches node ' || m.b::text || ', and one of them has no documents'
FROM textsim.match_{id} m
WHERE NOT EXISTS (SELECT FROM textsim.node_{id} n WHERE n.node = m.a)
    OR NOT EXISTS (SELECT FROM textsim.node_{id} n WHERE n.node = m.b)
UNION ALL
SELECT 'node ' || k.node::text, 'it is crowded, and has no documents'
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
SELECT DISTINCT n.node FROM {document} d JOIN textsim.node_{id} n ON n.document_id = d.id
WHERE d.key IN (
    SELECT k.key FROM textsim.corpus c
    JOIN textsim.judgement j ON j.origin = textsim._origin(c) AND j.verdict <> 'unsure'
    CROSS JOIN LATERAL (VALUES (j.a), (j.b)) k (key)
    WHERE c.id = {id})
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
), computed AS MATERIALIZED (
    SELECT f.a, f.b, f.similarity
    FROM textsim._find_matches_{id}(
        (SELECT c FROM textsim.corpus c WHERE c.id = {id}), %(threshold)s, %(nodes)s::integer[]) l
    CROSS JOIN LATERAL ROWS FROM (
        pg_catalog.unnest(l.lefts), pg_catalog.unnest(l.rights), pg_catalog.unnest(l.similarities)
    ) f (a, b, similarity)
)
SELECT x.key, y.key, s.similarity, f.similarity
FROM stored s FULL JOIN computed f ON f.a = s.a AND f.b = s.b
CROSS JOIN LATERAL (
    SELECT d.key FROM textsim.node_{id} n JOIN {document} d ON d.id = n.document_id
    WHERE n.node = coalesce(s.a, f.a)
        AND d.id NOT IN (SELECT pg_catalog.unnest(textsim._logged_ids({id})))
    ORDER BY d.id LIMIT 1
) x
CROSS JOIN LATERAL (
    SELECT d.key FROM textsim.node_{id} n JOIN {document} d ON d.id = n.document_id
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
    SELECT DISTINCT m.cluster FROM pg_catalog.unnest(textsim._logged_ids({id})) i (id)
    JOIN textsim.member_{id} m ON m.document_id = i.id
), expected AS MATERIALIZED (
    SELECT e.document_id, e.representative, count(*) OVER (PARTITION BY e.representative) AS size
    FROM textsim._group_nodes_{id}(
        (SELECT c FROM textsim.corpus c WHERE c.id = {id}), 'kept',
        ARRAY(SELECT DISTINCT n.node FROM textsim.node_{id} n)) g
    CROSS JOIN LATERAL ROWS FROM (
        pg_catalog.unnest(g.documents), pg_catalog.unnest(g.representatives)
    ) e (document_id, representative)
), stored AS (
    SELECT m.document_id, m.cluster, c.representative, c.size
    FROM textsim.member_{id} m LEFT JOIN textsim.cluster_{id} c ON c.id = m.cluster
)
SELECT coalesce(d.key, 'document ' || coalesce(s.document_id, e.document_id)::text),
    'its cluster is not that of its matches'
FROM stored s
FULL JOIN (SELECT e.* FROM expected e WHERE e.size > 1) e ON e.document_id = s.document_id
LEFT JOIN {document} d ON d.id = coalesce(s.document_id, e.document_id)
WHERE (s.representative, s.size) IS DISTINCT FROM (e.representative, e.size)
    AND (s.cluster IS NULL OR s.cluster NOT IN (SELECT k.cluster FROM changed k))
    -- A judgement of a waiting document may decide where others go.
    AND NOT EXISTS (
        SELECT FROM textsim.corpus c
        CROSS JOIN pg_catalog.unnest(textsim._logged_ids({id})) i (id) JOIN {document} w ON w.id = i.id
        WHERE c.id = {id} AND textsim._has_verdicts(textsim._origin(c))
            AND textsim._is_judged(textsim._origin(c), w.key))
UNION ALL
SELECT 'cluster ' || c.id::text, 'it has no members' FROM textsim.cluster_{id} c
WHERE NOT EXISTS (SELECT FROM textsim.member_{id} m WHERE m.cluster = c.id)
"""
WRONG_ALIASES: Final[LiteralString] = """
SELECT 'cluster ' || a.old::text, 'it exists, and its alias leads to cluster ' || a.new::text
FROM textsim.cluster_alias_{id} a JOIN textsim.cluster_{id} c ON c.id = a.old
UNION ALL
SELECT 'cluster ' || a.old::text,
    'its alias leads to cluster ' || a.new::text || ', which became part of another'
FROM textsim.cluster_alias_{id} a JOIN textsim.cluster_alias_{id} n ON n.old = a.new
UNION ALL
SELECT 'cluster ' || e.cluster::text,
    'it became part of cluster ' || e.other::text || ', and has no alias'
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
    textsim._key_of(s, 't'), textsim._has_document(s, 't'),
    coalesce({READING_FAULT}, textsim._unseen_changes(s))
FROM textsim.source s
JOIN pg_catalog.pg_class r ON r.oid = s.relation::oid
JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace
WHERE s.corpus_id = {{id}} AND s.active AND NOT EXISTS (
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
