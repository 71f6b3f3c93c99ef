"""The SQL statements of this package."""

from __future__ import annotations

from typing import Final, LiteralString

# Writing a batch.

_STORED: Final[
    LiteralString
] = """d.id, pg_catalog.array_send(d.word_ids), d.normal_form, d.language,
    d.part, CASE WHEN true{alive} THEN d.source_id END,
    pg_catalog.timestamptz_send(d.expires_at)"""
"""The fields of prepare_batches.Stored; an expired document no longer belongs to an attached table."""

FIND_DOCUMENTS: Final[LiteralString] = f"""
/* textsim-db: find documents of corpus {{id}} */
SELECT d.key, {_STORED}, NULL
FROM {{document}} d WHERE d.key = ANY (%s::text[])
"""
LOCK_DOCUMENTS: Final[LiteralString] = f"""
/* textsim-db: lock documents of corpus {{id}} */
SELECT d.key, {_STORED}, pg_catalog.array_send(d.signature)
FROM {{document}} d WHERE d.key = ANY (%s::text[]) ORDER BY d.key FOR UPDATE
"""
LOCK_FREE_DOCUMENTS: Final[LiteralString] = LOCK_DOCUMENTS.rstrip() + " SKIP LOCKED"
STORED_KEYS: Final[LiteralString] = "SELECT key FROM {document} WHERE key = ANY (%s::text[])"
NEXT_IDS: Final[LiteralString] = """
SELECT pg_catalog.array_send(ARRAY(
    SELECT pg_catalog.nextval({sequence_name}) FROM pg_catalog.generate_series(1, %s)))
"""
UPDATE_DOCUMENT: Final[LiteralString] = """
UPDATE {document} SET word_ids = %b, normal_form = %b, signature = %b, fingerprints = %b::integer[],
    shingle_count = %b, language = %b, scope = %b, guard = %b, expires_at = %b,
    source_id = coalesce(%b::integer, source_id), forced = forced AND %b, cluster_size = NULL
WHERE id = %b
"""
NEW_EXPIRY: Final[LiteralString] = """
SELECT pg_catalog.timestamptz_send(textsim._new_expiry(c)) FROM textsim.corpus c WHERE c.id = {id}
"""
EXTEND_DOCUMENTS: Final[LiteralString] = """
/* textsim-db: extend documents of corpus {id} */
UPDATE {document} SET expires_at = %s WHERE id = ANY (%s::integer[])
"""
REMOVE_DOCUMENTS: Final[LiteralString] = """
/* textsim-db: remove documents of corpus {id} */ SELECT textsim._remove_documents({id}, %s::text[])
"""
EXPIRE: Final[LiteralString] = """
/* textsim-db: remove expired documents */
SELECT textsim._expire(%s, pg_catalog.make_interval(secs => %s), %s)
"""
EXPIRING_CORPORA: Final[LiteralString] = """
SELECT c.id, c.name, extract(epoch FROM pg_catalog.clock_timestamp())::float8
FROM textsim.corpus c
WHERE c.keep_for IS NOT NULL AND NOT pg_catalog.starts_with(c.name, 'textsim temporary ')
    AND pg_catalog.has_table_privilege(
        pg_catalog.to_regclass('textsim.document_' || c.id::text), 'DELETE')
"""
ADOPT_DOCUMENTS: Final[LiteralString] = """
/* textsim-db: adopt documents of corpus {id} */
UPDATE {document} SET source_id = %s WHERE id = ANY (%s::integer[])
"""
DELETE_DOCUMENTS: Final[LiteralString] = """
/* textsim-db: remove documents of corpus {id} */
DELETE FROM {document} WHERE id = ANY (%s::integer[])
"""
DELETE_BAND_ROWS: Final[LiteralString] = """
/* textsim-db: remove band rows of corpus {id} */
DELETE FROM {band} b
USING unnest(%s::integer[], %s::integer[]) gone (bucket, document_id)
WHERE b.bucket = gone.bucket AND b.document_id = gone.document_id
"""
COPY_DOCUMENTS: Final[LiteralString] = """
/* textsim-db: load documents of corpus {id} */
COPY {document} (
    id, key, source_id, shingle_count, language, scope, expires_at, guard, word_ids, normal_form,
    signature, fingerprints)
FROM STDIN (FORMAT binary)
"""
COPY_BAND_ROWS: Final[LiteralString] = """
/* textsim-db: load band rows of corpus {id} */
COPY {band} (bucket, document_id) FROM STDIN (FORMAT binary)
"""
COPY_PASSAGE_ROWS: Final[LiteralString] = """
/* textsim-db: load fingerprints of corpus {id} */
COPY {passage} (fingerprint, document_id) FROM STDIN (FORMAT binary)
"""

# Keeping twins out of a unique corpus.

LOCK_BUCKETS: Final[LiteralString] = """
/* textsim-db: lock the buckets of documents of a unique corpus */
SELECT textsim._lock_buckets(%s::integer, %s::integer[], %s::bigint[])
"""
COUNT_TWINS: Final[LiteralString] = "SELECT textsim._count_twins(%s, %s)"
REFUSE_ATTACHED: Final[LiteralString] = "SELECT textsim._refuse_attached(%s, %s::text[])"
# The same checks as in textsim.attach().
SOURCE_FAULTS: Final[LiteralString] = """
SELECT s.relation::regclass::text, coalesce(
    textsim._unfit(new, s.relation, s.mode, s.key_columns, s.scope_column),
    CASE WHEN new.is_unique THEN textsim._unlogged_fault(s.relation) END,
    textsim._hidden_rows_fault(new, s.relation))
FROM textsim.source s, textsim.corpus new
WHERE s.corpus_id = %s AND new.id = %s AND s.active
    AND EXISTS (SELECT FROM pg_catalog.pg_class r WHERE r.oid = s.relation::oid)
ORDER BY 1
"""
STANDING_DOCUMENTS: Final[LiteralString] = """
/* textsim-db: the matches of documents of corpus {id} that still count */
SELECT d.key, d.forced FROM {document} d WHERE d.key = ANY (%s::text[]){alive}
"""
FORCE_DOCUMENTS: Final[LiteralString] = """
UPDATE {document} SET forced = true WHERE key = ANY (%s::text[])
"""
MARK_REJECTED: Final[LiteralString] = """
UPDATE {document} d SET rejected = r.reason FROM unnest(%s::text[], %s::text[]) r (key, reason)
WHERE d.key = r.key
"""
REJECT: Final[LiteralString] = "SELECT textsim.reject(%s, %s, %s)"
REJECTION: Final[LiteralString] = "SELECT textsim._rejection(textsim._corpus(%s), %s)"
REJECTED: Final[LiteralString] = "SELECT r.key, r.reason, r.scope FROM textsim.rejected(%s, %s) r"
SET_CLUSTER_SIZES: Final[LiteralString] = """
WITH counted AS MATERIALIZED (
    SELECT c.key, pg_catalog.array_agg(c.hash) AS hashes
    FROM unnest(%s::text[], %s::bigint[]) c (key, hash) GROUP BY c.key
)
UPDATE {document} d SET cluster_size = new.size, counted_keys = ARRAY(
    SELECT pg_catalog.unnest(d.counted_keys) WHERE d.cluster_size IS NOT NULL
    UNION SELECT pg_catalog.unnest(counted.hashes))
FROM unnest(%s::text[], %s::integer[]) new (key, size) LEFT JOIN counted ON counted.key = new.key
WHERE d.key = new.key
"""
LOCK_MATCHES: Final[LiteralString] = """
/* textsim-db: lock the matches of documents of corpus {id} */
SELECT id, pg_catalog.array_send(word_ids), normal_form
FROM {document} WHERE id = ANY (%s::integer[]) ORDER BY id FOR SHARE
"""

# During and after a load.

ESTIMATED_DOCUMENTS: Final[LiteralString] = """
SELECT reltuples FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass({document_name})::oid
"""
# A table follows each of these. No VACUUM during a load cuts the end off a table: the load needs it.
VACUUM_DURING_LOAD: Final[LiteralString] = """
/* textsim-db: vacuum corpus {id} during a load */ VACUUM (SKIP_LOCKED, TRUNCATE false) """
VACUUM_AFTER_LOAD: Final[LiteralString] = """
/* textsim-db: vacuum corpus {id} after a load */ VACUUM (ANALYZE, SKIP_LOCKED) """
ANALYZE_AFTER_LOAD: Final[LiteralString] = """
/* textsim-db: analyze corpus {id} after a load */ ANALYZE (SKIP_LOCKED) """

# Temporary corpora: an advisory lock shows that the process that created one is alive.

# The lock belongs to a transaction, not to a session. Behind a pooler each statement may get another
# session, and the next client of the session would hold the lock too. The transaction has no snapshot
# and no xid, so it does not hold back VACUUM.
BEGIN_TO_HOLD: Final[LiteralString] = """
BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY /* textsim-db: hold a temporary corpus */
"""
HOLD_WITHOUT_LIMIT: Final[LiteralString] = """
SELECT pg_catalog.set_config(name, '0', true) FROM pg_catalog.pg_settings
WHERE name IN ('idle_in_transaction_session_timeout', 'transaction_timeout')
"""
# Only the owner of the tables can drop them.
REPLACED_CORPORA: Final[LiteralString] = """
SELECT c.name, n.id, n.name FROM textsim.corpus c
JOIN pg_catalog.pg_class d ON d.oid = pg_catalog.to_regclass('textsim.document_' || c.id::text)::oid
JOIN textsim.corpus n ON textsim._origin(n) = textsim._origin(c)
    AND NOT pg_catalog.starts_with(n.name, 'textsim temporary ')
WHERE c.name ~ '^textsim temporary [0-9a-f]{16} old$' AND pg_catalog.pg_has_role(d.relowner, 'USAGE')
"""
TRY_TO_LOCK_NAME: Final[LiteralString] = """
SELECT pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended(%s, 0))
"""

# Common shingles of an exact corpus.

IS_REPLACEABLE: Final[LiteralString] = """
SELECT NOT EXISTS (SELECT FROM {document}) AND pg_catalog.pg_has_role(relowner, 'USAGE')
    AND NOT EXISTS (SELECT FROM textsim.tracked t WHERE t.corpus_id = {id})
FROM pg_catalog.pg_class WHERE oid = {document_name}::regclass::oid
"""

# Rebuilding a corpus.

# Each version of a row has a new xmin.
DOCUMENT_VERSIONS: Final[LiteralString] = """
/* textsim-db: rebuild corpus {id}: versions */
COPY (
    SELECT id, (xmin::pg_catalog.text::bigint - 2147483648)::integer,
        coalesce(pg_catalog.pg_column_size(word_ids), pg_catalog.octet_length(normal_form))
    FROM {document}
) TO STDOUT (FORMAT binary)
"""
DOCUMENTS_TO_COPY: Final[LiteralString] = """
/* textsim-db: rebuild corpus {id}: documents */
SELECT id, key, source_id, pg_catalog.array_send(word_ids), normal_form, language, scope,
    pg_catalog.timestamptz_send(expires_at), forced, cluster_size, pg_catalog.array_send(counted_keys),
    rejected
FROM {document} WHERE id = ANY (%s::integer[]) ORDER BY id
"""
STORED_SIGNATURES: Final[LiteralString] = """
/* textsim-db: rebuild corpus {id}: changed documents */
SELECT id, part, pg_catalog.array_send(signature) FROM {document} WHERE id = ANY (%s::integer[])
"""
INSERT_WAITING_DOCUMENT: Final[LiteralString] = """
INSERT INTO {document} (
    id, key, source_id, shingle_count, scope, guard, expires_at, signature, fingerprints, normal_form)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s::integer[], %s)
"""
SET_LOCK_TIMEOUT: Final[LiteralString] = """
SELECT pg_catalog.set_config('lock_timeout', %s, true)
"""
WAIT_FOR_CLUSTERS: Final[LiteralString] = """
/* textsim-db: rebuild: wait for the update of clusters */ SELECT textsim._lock_clusters(%s)
"""
LOCK_AGAINST_WRITERS: Final[LiteralString] = """
/* textsim-db: rebuild corpus {id}: wait for writers */
LOCK TABLE {document} IN SHARE ROW EXCLUSIVE MODE
"""
LOCK_AGAINST_JUDGEMENTS: Final[LiteralString] = (
    "SELECT FROM textsim.corpus WHERE id = %s FOR NO KEY UPDATE"
)
REFUSE_REBUILD: Final[LiteralString] = """
SELECT textsim._refuse_views(%(id)s)
"""
MOVE_TRACKING: Final[LiteralString] = """
SELECT textsim._refuse_views(%(old)s), (
    SELECT textsim._create_tracking_relations(%(new)s, %(old)s)
    FROM textsim.tracked t WHERE t.corpus_id = %(old)s)
"""
# Sessions that hold an advisory lock are rebuilds, writers and migrations, which read no corpus.
OPEN_TRANSACTIONS: Final[LiteralString] = """
/* textsim-db: transactions that may look for a replaced corpus */
SELECT l.virtualtransaction FROM pg_catalog.pg_locks l
WHERE l.locktype = 'virtualxid' AND l.granted AND l.pid <> pg_catalog.pg_backend_pid()
    AND l.pid NOT IN (
        SELECT a.pid FROM pg_catalog.pg_locks a WHERE a.locktype = 'advisory' AND a.pid IS NOT NULL)
"""
JUDGEMENTS: Final[LiteralString] = """
SELECT j.a, j.b, j.verdict, j.judged_by, j.judged_at, j.note, j.source, j.confidence,
    j.hash_a::text, j.hash_b::text, j.is_stale
FROM textsim.judgements(%s) j
"""
JUDGE: Final[LiteralString] = "SELECT textsim.judge(%s, %s, %s, %s, %s, %s, %s, %s, %s::uuid[])"
DOUBTFUL: Final[LiteralString] = """
SELECT p.a, p.b, p.similarity, p.differs FROM textsim.doubtful(%s, %s, %s, %s) p
"""
UNJUDGE: Final[LiteralString] = "SELECT textsim.unjudge(%s, %s, %s)"
IS_IN_PLACE: Final[LiteralString] = """
SELECT EXISTS (SELECT FROM textsim.corpus WHERE id = %s AND name = %s)
"""
FORGET: Final[LiteralString] = """
SELECT f.documents, f.judgements, f.events, f.log_entries
FROM textsim.forget(%(corpus)s, %(keys)s, %(scope)s, %(all_expired)s, %(all_removed)s) f
"""
# A rebuild leaves out the words of the documents that were forgotten before it began to copy.
BEGIN_TO_ERASE: Final[LiteralString] = (
    "UPDATE textsim.forgotten SET rebuild = %(new)s WHERE corpus_id = %(old)s"
)
WAITING_REQUESTS: Final[LiteralString] = (
    "SELECT ARRAY(SELECT id FROM textsim.forgotten WHERE corpus_id = %s)"
)
ARE_WAITING: Final[LiteralString] = (
    "SELECT EXISTS (SELECT FROM textsim.forgotten f JOIN textsim.corpus c ON c.id = f.corpus_id "
    "WHERE f.id = ANY (%s) AND NOT pg_catalog.starts_with(c.name, 'textsim temporary '))"
)
HAS_REPLACED: Final[LiteralString] = """
SELECT count(*) > 1 FROM textsim.corpus WHERE coalesce(origin, id) = %(origin)s
"""
# After VACUUM FULL the count of rows includes removed rows that a transaction may still read.
HAS_REMOVED_ROWS: Final[LiteralString] = """
SELECT c.reltuples::float8 > (SELECT count(*) FROM {})::float8
FROM pg_catalog.pg_class c WHERE c.oid = %s::regclass::oid
"""
REPLACE_CORPUS: Final[LiteralString] = """
/* textsim-db: replace a corpus */ SELECT textsim._replace_corpus(%s, %s)
"""
NEAR_MISSES: Final[LiteralString] = """
SELECT m.outcome, m.key, m.similarity, m.differs
FROM textsim.corpus c CROSS JOIN LATERAL textsim._near_misses(c, %s, %s) m WHERE c.id = {id}
"""
