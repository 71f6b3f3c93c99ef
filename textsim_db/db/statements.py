"""The SQL that this room sends. What is in braces, StoredCorpus.statement() fills in.

A statement that may run for long begins with a comment, for pg_stat_activity.
"""

from __future__ import annotations

# Connections

# current_setting() returns the value with a unit, such as 50ms or 2min, or 0 if there is no limit.
WAIT_AT_MOST = """
SELECT l.before, pg_catalog.date_part('epoch', l.before::interval), pg_catalog.set_config(
    'lock_timeout',
    CASE WHEN l.before::interval BETWEEN '1us' AND %(most)s::text::interval
        THEN l.before ELSE %(most)s::text END,
    true)
FROM (SELECT pg_catalog.current_setting('lock_timeout')) l (before)
"""
WITHOUT_TIME_LIMITS = """
SELECT pg_catalog.set_config(name, '0', true) FROM pg_catalog.pg_settings
WHERE name IN ('statement_timeout', 'transaction_timeout')
"""

# The schema. These work at every revision: they call no function of the schema.

LOCK_MIGRATIONS = "/* textsim-db: wait for a migration */ SELECT pg_advisory_xact_lock(%s)"
HAS_VERSION = "SELECT to_regclass('textsim.alembic_version') IS NOT NULL"
VERSION = "SELECT version_num FROM textsim.alembic_version"
HAS_SCHEMA = "SELECT to_regnamespace('textsim') IS NOT NULL"
HAS_CORPORA = "SELECT to_regclass('textsim.corpus') IS NOT NULL"
VIEW_OVER_SCHEMA = """
SELECT CASE v.relkind WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'VIEW' END, v.oid::regclass::text
FROM pg_depend d
JOIN pg_rewrite r ON r.oid = d.objid
JOIN pg_class v ON v.oid = r.ev_class
LEFT JOIN pg_class t ON d.refclassid = 'pg_class'::regclass AND t.oid = d.refobjid
LEFT JOIN pg_proc f ON d.refclassid = 'pg_proc'::regclass AND f.oid = d.refobjid
WHERE d.classid = 'pg_rewrite'::regclass
    AND 'textsim'::regnamespace IN (t.relnamespace, f.pronamespace)
    AND v.relnamespace <> 'textsim'::regnamespace
ORDER BY 2 LIMIT 1
"""
CORPUS_IDS = "SELECT id FROM textsim.corpus ORDER BY id"
SOURCE_IDS = "SELECT id FROM textsim.source WHERE corpus_id = %s"
DROP_TRIGGER_FUNCTION = "DROP FUNCTION IF EXISTS {}() CASCADE"
FORGET_SOURCES = "DELETE FROM textsim.source WHERE corpus_id = %s"
FORGET_CORPUS = "DELETE FROM textsim.corpus WHERE id = %s"
# The band rows first, as searches lock them.
DROP_PARTITIONS = "DROP TABLE IF EXISTS {}, {}"
HASH_WORDS = "SELECT array(SELECT hashtextextended(w, 0) FROM unnest(%s::text[]) w)"
HASH_BANDS = (
    "SELECT ARRAY[hash_array_extended(ARRAY[7, 2147483646], 0), "
    "hash_array_extended(ARRAY[0, 123456789], 1)]"
)

# Corpora

_COLUMNS = (
    "id, name, unit, shingle_length, threshold, recall, num_hashes, bands, rows, seed, recipe, "
    "golden_signature, golden_buckets, coalesce(origin, id) AS origin, stop_words, language, "
    "stop_words_by_language"
)
CORPUS_BY_NAME = f"SELECT {_COLUMNS} FROM textsim.corpus WHERE name = %s"
CORPUS_BY_ID = f"SELECT {_COLUMNS} FROM textsim.corpus WHERE id = %s"
CORPUS_NAMES = 'SELECT name FROM textsim.corpus ORDER BY name COLLATE "C"'
INSERT_CORPUS = """
INSERT INTO textsim.corpus (
    name, unit, shingle_length, threshold, recall, num_hashes, bands, rows, seed, recipe,
    stop_words, language, stop_words_by_language, a, b, golden_signature, golden_buckets
) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (name) DO NOTHING
RETURNING id
"""
CREATE_PARTITIONS = "SELECT textsim._create_partitions(%s)"
LOCK_CORPUS_BY_NAME = "SELECT id FROM textsim.corpus WHERE name = %s FOR UPDATE"
LOCK_CORPUS_BY_ID = "SELECT id FROM textsim.corpus WHERE id = %s FOR UPDATE"
DROP_CORPUS = "/* textsim-db: drop a corpus */ SELECT textsim._drop_corpus(%s)"

# The band index of a corpus

LOCK_BANDS = "LOCK TABLE {band}"
LOCK_BANDS_AGAINST_WRITERS = "LOCK TABLE {band} IN SHARE ROW EXCLUSIVE MODE"
HAS_DOCUMENTS = "SELECT EXISTS (SELECT FROM {document})"
HAS_BAND_INDEX = "SELECT pg_catalog.to_regclass({index_name}) IS NOT NULL"
DROP_BAND_INDEX = "DROP INDEX textsim.{index}"
BUILD_BAND_INDEX = """
/* textsim-db: build the band index of corpus {id} */
CREATE INDEX IF NOT EXISTS {index} ON {band} (bucket, document_id)
"""

# The dictionary

SELECT_WORDS = """
/* textsim-db: find words in the dictionary */
SELECT w.hash, w.id, w.word
FROM pg_catalog.unnest(%s::bigint[]) q (hash) JOIN textsim.word w ON w.hash = q.hash
"""
# In the order of the hashes, so that two writers wait for each other in one direction only.
INSERT_WORDS = """
/* textsim-db: add words to the dictionary */
INSERT INTO textsim.word (hash, word)
SELECT hash, word FROM unnest(%s::bigint[], %s::text[]) q (hash, word) ORDER BY hash
ON CONFLICT (hash) DO NOTHING
RETURNING hash, id
"""
# Documents refer to a word by its id later on: a crash must not lose the word, or another word would
# get the id, even if the role cares little for its last transactions.
DURABLE = """
SELECT pg_catalog.set_config('synchronous_commit', 'on', true)
WHERE pg_catalog.current_setting('synchronous_commit') = 'off'
"""
WORDS_BY_ID = """
/* textsim-db: read the dictionary */
SELECT id, word FROM textsim.word WHERE id = ANY (%s::integer[])
"""
LAST_WORD_ID = "SELECT coalesce(max(id), 0) FROM textsim.word"
