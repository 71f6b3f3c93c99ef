"""The SQL statements of this package: sources, reads of their tables, the log, and documents."""

from __future__ import annotations

from typing import Final, LiteralString

from textsim_db.read.integrity_statements import READING_FAULT

# Attached tables, as users see them.

FIND_TABLE: Final[LiteralString] = """
SELECT coalesce(
    pg_catalog.to_regclass(pg_catalog.quote_ident(%(name)s)), pg_catalog.to_regclass(%(name)s)
)::oid
"""
TABLE_NAMES: Final[LiteralString] = """
SELECT c.oid::regclass::text FROM pg_catalog.pg_class c
WHERE c.relkind IN ('r', 'p')
    AND c.relnamespace NOT IN ('pg_catalog'::regnamespace::oid, 'information_schema'::regnamespace::oid)
ORDER BY 1
"""
ATTACH: Final[LiteralString] = """
/* textsim-db: attach a table */ SELECT textsim.attach(
    %s, %s::oid::regclass, NULL, %s, %s, %s, %s, %s, %s, %s, %s::text[]::name[], %s)
"""
DOCUMENTS_OF_SOURCE: Final[LiteralString] = """
/* textsim-db: count the documents of a table in corpus {id} */
SELECT count(*), count(*) FILTER (WHERE shingle_count = 0) FROM {document} WHERE source_id = %s
"""
SOURCE_ID: Final[LiteralString] = """
SELECT s.id FROM textsim.source s JOIN textsim.corpus c ON c.id = s.corpus_id
WHERE c.name = %s AND s.relation::oid = %s::oid
"""
DETACH: Final[LiteralString] = (
    "/* textsim-db: detach a table */ SELECT textsim.detach(%s, %s::oid::regclass)"
)
MERGE: Final[LiteralString] = """
/* textsim-db: merge duplicates of a table */
CALL textsim.merge(%s, %s::oid::regclass, %s, %s, %s, %s)
"""
TEXTS_TO_MERGE: Final[LiteralString] = """
/* textsim-db: count duplicates of a table */
SELECT rows, copies, body FROM textsim._texts_to_merge(%s, %s::oid::regclass, %s, %s, %s, %s)
"""
UNMERGE: Final[LiteralString] = """
/* textsim-db: bring merged rows back */
SELECT key, kept_key, outcome FROM textsim.unmerge(%s, %s, %s, %s, %s, %s)
"""
ATTACHED_TABLES: Final[LiteralString] = """
SELECT corpus, relation::text, key_columns::text[], text_column, scope_column, mode, time_column,
    expires_column, row_filter
FROM textsim.sources
ORDER BY corpus, relation::text
"""
STATUS: Final[LiteralString] = """
/* textsim-db: status of a corpus */
SELECT indexed, pending, oldest_pending, failed, is_estimate, problems, as_text, saved_by_ids,
    linkage, tracked_threshold, outdated, outdated_since, crowded, indexed_is_estimate, notes,
    extract(epoch FROM pending_age)::float8, extract(epoch FROM textsim._age(outdated_since))::float8,
    (SELECT pg_catalog.pg_stat_get_tuples_inserted(d.oid)
        + pg_catalog.pg_stat_get_tuples_updated(d.oid)
        + pg_catalog.pg_stat_get_tuples_deleted(d.oid)
    FROM (SELECT {document_name}::pg_catalog.regclass::oid) d (oid))
FROM textsim.status(%s)
"""
SCOPES: Final[LiteralString] = """
/* textsim-db: scopes of a corpus */ SELECT scope, indexed, as_text FROM textsim._scopes(%s, %s)
"""
METRICS: Final[LiteralString] = """
/* textsim-db: metrics */
SELECT m.name, m.labels, m.value, m.help FROM textsim.metrics m ORDER BY m.name, m.labels::text
"""
SEARCH_WARNINGS: Final[LiteralString] = """
SELECT w.relation::text, w.warning, w.remedy
FROM textsim.corpus c CROSS JOIN LATERAL textsim._search_warnings(c) w WHERE c.id = %s
"""
# A postponed key was not tried.
LEASED_TABLES: Final[LiteralString] = """
SELECT s.relation::text, c.name, bool_or(p.kind = 'compare')
FROM textsim.pending p
JOIN textsim.source s ON s.id = p.source_id JOIN textsim.corpus c ON c.id = s.corpus_id
WHERE p.kind IN ('change', 'compare') AND p.tries > 0
    AND NOT textsim._is_ready(p.lease_until)
GROUP BY s.id, c.id ORDER BY c.id, s.id
"""

# Sources as a worker sees them, and reads of their tables.
#
# These statements run with the rights of the worker's role. So they call only functions of pg_catalog
# and textsim, by qualified names, and use only operators and casts of built-in types. Otherwise the
# owner of a table could run a function with these rights. Each operator has operands for which
# pg_catalog has it, without a cast: another role could add one to public, which would fit better. So
# have the statements of every package.

_SELECT: Final[LiteralString] = """
SELECT s.id, s.corpus_id, s.relation::oid, n.nspname, r.relname, textsim._key_of(s, 't'),
    textsim._has_key(s, 't', 'q.key'), textsim._key_order(s, 't'), textsim._is_after(s, 't', 'q.key'),
    s.text_column, textsim._scope_of(s, 't'), textsim._expiry_of(s, 't'),
    textsim._has_document(s, 't'), textsim._row_fault(s, 't'), s.mode,
    CASE WHEN r.oid IS NULL THEN pg_catalog.format('with the oid %%s', s.relation::oid)
        ELSE pg_catalog.format('%%I.%%I', n.nspname, r.relname) END,
    textsim._source_fault(s)
"""
_FROM: Final[LiteralString] = """
FROM textsim.source s
LEFT JOIN pg_catalog.pg_class r ON r.oid = s.relation::oid
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace
WHERE s.active
"""
SOURCE: Final[LiteralString] = f"{_SELECT} {_FROM} AND s.id = %s"
SOURCES: Final[LiteralString] = f"""
{_SELECT}, s.shape OPERATOR(pg_catalog.<>) textsim._shape(s),
    ARRAY(SELECT textsim._source_problems(s)) {_FROM}
    AND s.corpus_id = coalesce(%(corpus_id)s, s.corpus_id) AND s.id = coalesce(%(id)s, s.id)
ORDER BY s.id
"""
READING_FAULTS: Final[LiteralString] = f"""
SELECT s.id, {READING_FAULT}
FROM textsim.source s
JOIN pg_catalog.pg_class r ON r.oid = s.relation::oid
JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace
WHERE s.active AND s.corpus_id = %s
"""
SOURCE_NAMES: Final[LiteralString] = """
SELECT s.id, s.relation::text FROM textsim.source s WHERE s.id = ANY (%s::integer[]) AND s.active
"""
LOG_UNSEEN_CHANGES: Final[LiteralString] = """
/* textsim-db: log what triggers missed */ SELECT textsim._compare_changed(%s)
"""
RELEASE_DROPPED: Final[LiteralString] = """
/* textsim-db: detach a dropped table */ SELECT textsim._release_dropped(%s)
"""
LOCK_TABLE: Final[LiteralString] = (
    "/* textsim-db: hold an attached table */ LOCK TABLE ONLY {relation} IN ACCESS SHARE MODE"
)
# OFFSET 0 makes the planner look up each key. Otherwise it may read a whole partitioned table, because
# it does not see that a key leads to one partition.
READ_ROWS: Final[LiteralString] = """
/* textsim-db: read changed rows */
SELECT r.* FROM pg_catalog.unnest(%s::text[]) q (key) CROSS JOIN LATERAL (
    SELECT {key}, t.{text}::text, {scope}, pg_catalog.timestamptz_send({expiry}), {row_fault}
    FROM {relation} t WHERE {has_key} AND {has_document} OFFSET 0
) r
"""
READ_SIZES: Final[LiteralString] = """
/* textsim-db: sizes of changed rows */
SELECT r.* FROM pg_catalog.unnest(%s::text[]) q (key) CROSS JOIN LATERAL (
    SELECT {key}, pg_catalog.octet_length(t.{text}::text)
    FROM {relation} t WHERE {has_key} AND {has_document} OFFSET 0
) r
"""
FIRST_PAGE: Final[LiteralString] = """
/* textsim-db: sweep an attached table */
SELECT {key}, pg_catalog.octet_length(t.{text}::text) FROM {relation} t
WHERE {has_document} ORDER BY {key_order} LIMIT %s
"""
NEXT_PAGE: Final[LiteralString] = """
/* textsim-db: sweep an attached table */
SELECT {key}, pg_catalog.octet_length(t.{text}::text)
FROM (SELECT %s::text) q (key) CROSS JOIN {relation} t
WHERE {has_document} AND {is_after}
ORDER BY {key_order} LIMIT %s
"""
ABSENT_KEYS: Final[LiteralString] = """
/* textsim-db: sweep: documents whose rows are gone */
SELECT q.key FROM pg_catalog.unnest(%s::text[]) q (key)
WHERE NOT EXISTS (
    SELECT FROM {relation} t WHERE {has_key} AND {has_document} OFFSET 0
)
"""

# The log.

CLAIM: Final[LiteralString] = """
/* textsim-db: claim pending changes */
SELECT p.id, p.kind,
    -- A rebuild moves the table of an entry to the new corpus.
    coalesce((SELECT s.corpus_id FROM textsim.source s WHERE s.id = p.source_id), p.corpus_id),
    p.source_id, p.keys, p.tries
FROM textsim._claim(
    %(sources)s::integer[], %(every_corpus)s, %(excluded)s::integer[], %(after)s, %(most)s, %(lease)s) p
"""
LEASE: Final[LiteralString] = "SELECT textsim._lease_entries(%s::bigint[], %s, %s)"
DELETE_ENTRIES: Final[LiteralString] = "SELECT textsim._delete_entries(%s::bigint[])"
DELETE_ORPHANS: Final[LiteralString] = """
DELETE FROM textsim.pending p
WHERE p.id = ANY (%s::bigint[])
    AND NOT EXISTS (SELECT FROM textsim.corpus c WHERE c.id = p.corpus_id)
    AND NOT EXISTS (SELECT FROM textsim.source s WHERE s.id = p.source_id)
"""
SPLIT: Final[LiteralString] = """
WITH gone AS (DELETE FROM textsim.pending p WHERE p.id = %s RETURNING p.*)
INSERT INTO textsim.pending (kind, corpus_id, source_id, keys, created_at, tries)
SELECT g.kind, g.corpus_id, g.source_id, ARRAY[k], g.created_at, g.tries
FROM gone g CROSS JOIN LATERAL (SELECT DISTINCT k FROM pg_catalog.unnest(g.keys) k) keys
"""
FAIL_ENTRY: Final[LiteralString] = """
UPDATE textsim.pending SET kind = 'failed', error = %s, lease_until = NULL WHERE id = %s
"""
COMPARISONS: Final[LiteralString] = """
SELECT p.id FROM textsim.pending p WHERE p.source_id = %s AND p.kind = 'compare'
"""
DELETE_DONE: Final[LiteralString] = """
WITH failures AS (
    DELETE FROM textsim.pending p
    WHERE p.corpus_id = %s AND p.kind = 'failed' AND (p.source_id IS NULL OR p.source_id = %s)
        AND p.keys[1] = ANY (%s::text[])
)
SELECT textsim._delete_entries(%s::bigint[])
"""
FAIL: Final[LiteralString] = """
INSERT INTO textsim.pending (kind, corpus_id, source_id, keys, tries, error)
VALUES ('failed', %s, %s, %s, %s, %s)
"""
POSTPONE: Final[LiteralString] = """
INSERT INTO textsim.pending (kind, corpus_id, source_id, keys, tries, lease_until)
VALUES (%s, %s, %s, %s, %s, pg_catalog.now() + pg_catalog.make_interval(secs => %s))
"""
# Ages come from the worker and times from the server, whose clocks may differ.
REPORT_WORKER: Final[LiteralString] = """
/* textsim-db: report the progress of a worker */
WITH gone AS (
    DELETE FROM textsim.worker w WHERE textsim._age(w.reported_at) > interval '10 minutes'
        AND w.id <> %(id)s
)
INSERT INTO textsim.worker AS w (
    id, host, process, claimed_at, wrote_at, step, step_began_at, error, failed_at,
    written, set_aside, expired, clustered, retries, faults)
VALUES (
    %(id)s, %(host)s, %(process)s,
    pg_catalog.now() - pg_catalog.make_interval(secs => %(claimed)s::float8),
    pg_catalog.now() - pg_catalog.make_interval(secs => %(wrote)s::float8),
    %(step)s,
    pg_catalog.now() - pg_catalog.make_interval(secs => %(step_began)s::float8),
    pg_catalog.left(%(error)s::text, 1000),
    pg_catalog.now() - pg_catalog.make_interval(secs => %(failed)s::float8),
    %(written)s, %(set_aside)s, %(expired)s, %(clustered)s, %(retries)s, %(faults)s)
ON CONFLICT (id) DO UPDATE
SET reported_at = excluded.reported_at, claimed_at = excluded.claimed_at,
    wrote_at = excluded.wrote_at, step = excluded.step, step_began_at = excluded.step_began_at,
    error = excluded.error, failed_at = excluded.failed_at,
    written = excluded.written, set_aside = excluded.set_aside, expired = excluded.expired,
    clustered = excluded.clustered, retries = excluded.retries, faults = excluded.faults
"""
FORGET_WORKER: Final[LiteralString] = "DELETE FROM textsim.worker WHERE id = %(id)s"
WORKERS: Final[LiteralString] = """
SELECT w.host, w.process, extract(epoch FROM n.now - w.reported_at)::float8,
    extract(epoch FROM n.now - w.claimed_at)::float8, extract(epoch FROM n.now - w.wrote_at)::float8,
    w.step, extract(epoch FROM n.now - w.step_began_at)::float8,
    w.error, extract(epoch FROM n.now - w.failed_at)::float8
FROM textsim.worker w CROSS JOIN (SELECT pg_catalog.clock_timestamp()) n (now)
ORDER BY w.host, w.process, w.started_at
"""
FAILURES: Final[LiteralString] = """
SELECT coalesce(k.key, d.key), s.relation::text, p.tries, p.error
FROM textsim.pending p
LEFT JOIN textsim.source s ON s.id = p.source_id
LEFT JOIN LATERAL pg_catalog.unnest(p.keys) k (key) ON true
LEFT JOIN LATERAL pg_catalog.unnest(p.document_ids) i (id) ON true
LEFT JOIN {document} d ON d.id = i.id
WHERE coalesce(s.corpus_id, p.corpus_id) = {id} AND p.kind = 'failed'
ORDER BY p.id DESC LIMIT %s
"""
RETRY_FAILURES: Final[LiteralString] = """
UPDATE textsim.pending p SET error = NULL, tries = 0, lease_until = NULL,
    kind = CASE WHEN p.document_ids IS NOT NULL THEN 'cluster' WHEN p.source_id IS NULL THEN 'words'
        WHEN p.keys IS NULL THEN 'compare' ELSE 'change' END
WHERE p.kind = 'failed' AND %s = coalesce(
    (SELECT s.corpus_id FROM textsim.source s WHERE s.id = p.source_id), p.corpus_id)
"""

# Tracked corpora.

TRACK: Final[LiteralString] = (
    "/* textsim-db: track a corpus */ SELECT textsim.track(%s, %s, %s, %s, %s)"
)
UNTRACK: Final[LiteralString] = "/* textsim-db: untrack a corpus */ SELECT textsim.untrack(%s)"
UPDATE_CLUSTERS: Final[LiteralString] = """
/* textsim-db: update clusters */ SELECT textsim._update_clusters(%s, %s)
"""
LOCK_CLUSTERS: Final[LiteralString] = "SELECT textsim._lock_clusters(%s, %s)"
LIMITS_OF_MATCHES: Final[LiteralString] = (
    "SELECT t.threshold, textsim._most_compared() FROM textsim.tracked t WHERE t.corpus_id = %s"
)
# A worker forbids these joins, because its own statements read few rows.
ALLOW_JOINS: Final[LiteralString] = """
SELECT pg_catalog.set_config('enable_hashjoin', 'on', true),
    pg_catalog.set_config('enable_mergejoin', 'on', true)
"""
CLUSTER_ENTRIES: Final[LiteralString] = """
SELECT coalesce(pg_catalog.array_agg(p.id), '{{}}'),
    coalesce(sum(pg_catalog.cardinality(p.document_ids)), 0)
FROM textsim.pending p WHERE p.kind = 'cluster' AND p.corpus_id = {id}
"""
COUNT_NODES: Final[LiteralString] = """
SELECT count(*) FROM (SELECT FROM textsim.node_{id} LIMIT %s) n
"""
IDS_TO_CLUSTER: Final[LiteralString] = """
/* textsim-db: documents of corpus {id} to cluster */
SELECT d.id FROM {document} d WHERE d.shingle_count > 0{alive} ORDER BY d.id
"""
REMOVE_NODES_AND_MATCHES: Final[tuple[LiteralString, ...]] = (
    "DELETE FROM textsim.node_{id}",
    "DELETE FROM textsim.match_{id}",
    "DELETE FROM textsim.crowded_{id}",
)
COPY_NODES: Final[LiteralString] = (
    "COPY textsim.node_{id} (document_id, node) FROM STDIN (FORMAT BINARY)"
)
COPY_MATCHES: Final[LiteralString] = (
    "COPY textsim.match_{id} (a, b, similarity) FROM STDIN (FORMAT BINARY)"
)
COPY_CROWDED: Final[LiteralString] = (
    "COPY textsim.crowded_{id} (node, is_full) FROM STDIN (FORMAT BINARY)"
)
REMOVE_CHANGED_NODES: Final[LiteralString] = """
DELETE FROM textsim.node_{id} n WHERE n.document_id IN (
    SELECT pg_catalog.unnest(p.document_ids) FROM textsim.pending p
    WHERE p.corpus_id = {id} AND p.document_ids IS NOT NULL AND p.id NOT IN (
        SELECT pg_catalog.unnest(%(entries)s::bigint[])))
"""
REMOVE_MATCHES_WITHOUT_NODES: Final[LiteralString] = """
DELETE FROM textsim.match_{id} m
WHERE NOT EXISTS (SELECT FROM textsim.node_{id} n WHERE n.node = m.a)
    OR NOT EXISTS (SELECT FROM textsim.node_{id} n WHERE n.node = m.b)
"""
DATE_DOUBTFUL: Final[LiteralString] = """
UPDATE textsim.match_{id} m SET since = pg_catalog.now()
FROM textsim.corpus c WHERE c.id = {id} AND NOT textsim._is_match(m.similarity, c.unique_from)
"""
END_ENTRIES: Final[LiteralString] = """
SELECT textsim._delete_entries(%(entries)s::bigint[]), pg_catalog.setval(
    'textsim.node_{id}_id_seq', greatest((SELECT max(n.node) FROM textsim.node_{id} n), 1))
"""
PLACE_JUDGED: Final[LiteralString] = """
SELECT textsim._place_judged_{id}(c, t.threshold)
FROM textsim.tracked t JOIN textsim.corpus c ON c.id = t.corpus_id WHERE c.id = {id}
"""
# Documents that are alone have no cluster, so their nodes are left out.
STORE_ALL_GROUPS: Final[LiteralString] = """
/* textsim-db: cluster corpus {id} */
WITH grouped AS MATERIALIZED (
    SELECT g.documents, g.representatives
    FROM textsim.tracked t JOIN textsim.corpus c ON c.id = t.corpus_id
    CROSS JOIN LATERAL textsim._group_nodes_{id}(c, t.linkage, ARRAY(
        SELECT m.a FROM textsim.match_{id} m UNION SELECT m.b FROM textsim.match_{id} m
        UNION SELECT n.node FROM textsim.node_{id} n GROUP BY n.node HAVING count(*) > 1
    )) g
    WHERE t.corpus_id = {id}
), gone AS MATERIALIZED (
    SELECT m.document_id FROM textsim.member_{id} m
    WHERE m.document_id NOT IN (SELECT pg_catalog.unnest(g.documents) FROM grouped g)
)
SELECT textsim._store_groups_{id}(
    g.documents OPERATOR(pg_catalog.||) ARRAY(SELECT o.document_id FROM gone o),
    g.representatives OPERATOR(pg_catalog.||) ARRAY(SELECT NULL::integer FROM gone o), NULL, NULL)
FROM grouped g
"""
# Documents that have expired are not read, and have matches until they are removed.
LOG_UNSEEN: Final[LiteralString] = """
SELECT textsim._log_ids({id}, ARRAY(
    SELECT d.id FROM {document} d
    WHERE NOT EXISTS (SELECT FROM textsim.node_{id} n WHERE n.document_id = d.id)
        AND textsim._has_node(
            (SELECT textsim._origin(c) FROM textsim.corpus c WHERE c.id = {id}),
            d.shingle_count, d.key)
        AND d.id NOT IN (SELECT pg_catalog.unnest(textsim._logged_ids({id})))
    ORDER BY d.id))
"""
ANALYZE_CLUSTERS: Final[tuple[LiteralString, ...]] = (
    "ANALYZE textsim.node_{id}",
    "ANALYZE textsim.match_{id}",
    "ANALYZE textsim.member_{id}",
    "ANALYZE textsim.cluster_{id}",
)
MEND_TRACKED: Final[LiteralString] = """
/* textsim-db: mend tracked clusters */ SELECT textsim._mend_tracked_{id}({id})
"""
# A first load builds the index of the band rows at its end.
# If a table is missing, the update raises an error.
OUTDATED_CLUSTERS: Final[LiteralString] = """
/* textsim-db: corpora with outdated clusters */
SELECT c.id, c.name, w.documents FROM textsim.tracked t JOIN textsim.corpus c ON c.id = t.corpus_id
CROSS JOIN LATERAL (
    SELECT sum(
        pg_catalog.cardinality(p.document_ids) + coalesce(pg_catalog.cardinality(p.judged_keys), 0))
    FROM textsim.pending p
    WHERE p.kind = 'cluster' AND p.corpus_id = c.id
) w (documents)
WHERE pg_catalog.to_regclass('textsim.band_' || c.id::text || '_bucket') IS NOT NULL
    AND pg_catalog.has_table_privilege(
        pg_catalog.to_regclass('textsim.node_' || c.id::text), 'UPDATE') IS NOT FALSE
    AND w.documents > 0
"""
CORPORA_WITH_EVENTS: Final[LiteralString] = """
SELECT c.id, c.name FROM textsim.tracked t JOIN textsim.corpus c ON c.id = t.corpus_id
WHERE t.keep_events IS NOT NULL
    AND pg_catalog.has_table_privilege(
        pg_catalog.to_regclass('textsim.node_' || c.id::text), 'UPDATE') IS NOT FALSE
"""
REMOVE_OLD_EVENTS: Final[LiteralString] = """
/* textsim-db: remove old events of clusters */ SELECT textsim._remove_old_events(%s)
"""
CLUSTER_EVENTS: Final[LiteralString] = """
/* textsim-db: events of clusters */
SELECT e.id, e.at, e.what, e.cluster, e.key, e.other FROM textsim.cluster_events(%s, %s) e
"""
MEMBERS: Final[LiteralString] = """
/* textsim-db: members of clusters */
SELECT m.key, m.cluster, m.representative, m.similarity, m.crowded FROM textsim.members(%s) m
ORDER BY m.cluster, m.key COLLATE "C"
"""
MEMBERS_OF: Final[LiteralString] = """
/* textsim-db: members of one cluster */
SELECT m.key, m.cluster, m.representative, m.similarity, m.crowded FROM textsim.members(%s, %s) m
ORDER BY m.key COLLATE "C"
"""

# Documents of a source, and documents that wait for the ids of their words or for their language.

# The first page begins at the empty key, which a document may have.
DOCUMENT_KEYS: Final[LiteralString] = """
/* textsim-db: sweep documents of corpus {id} */
SELECT d.key FROM {document} d
WHERE d.source_id = %(source)s AND d.key >= %(after)s AND (d.key > %(after)s OR %(is_first)s){alive}
ORDER BY d.key LIMIT %(most)s
"""
WAITING_SIZES: Final[LiteralString] = """
SELECT d.key, pg_catalog.octet_length(d.normal_form) FROM {document} d
WHERE d.key = ANY (%s::text[]) AND {waits}
"""
WAITING_KEYS: Final[LiteralString] = """
/* textsim-db: documents of corpus {id} that wait for a worker */
SELECT d.key FROM {document} d
WHERE {waits} AND d.key >= %(after)s AND (d.key > %(after)s OR %(is_first)s)
ORDER BY d.key LIMIT %(most)s
"""
WAITING_FORMS: Final[LiteralString] = """
SELECT d.key, d.id, d.normal_form FROM {document} d
WHERE d.key = ANY (%s::text[]) AND {waits}
"""
# Skips a document that another transaction has locked; write() postpones it.
COMPLETE: Final[LiteralString] = """
UPDATE {document} SET word_ids = %(ids)b::integer[], language = %(language)s,
    normal_form = CASE WHEN %(ids)b::integer[] IS NULL THEN normal_form END
WHERE id = (
    SELECT id FROM {document} WHERE id = %(id)s AND normal_form = %(form)s FOR UPDATE SKIP LOCKED
)
"""
STILL_WAITING: Final[LiteralString] = """
SELECT d.key FROM {document} d WHERE d.key = ANY (%s::text[]) AND {waits}
"""
