"""The SQL statements of this package; StoredCorpus.statement() fills in the names in braces."""

from __future__ import annotations

from typing import Final, LiteralString

# Connections

# current_setting() returns the value with a unit, such as 50ms or 2min, or 0 if there is no limit.
WAIT_AT_MOST: Final[LiteralString] = """
SELECT l.before, pg_catalog.date_part('epoch', l.before::interval), pg_catalog.set_config(
    'lock_timeout',
    CASE WHEN l.before::interval BETWEEN '1us' AND %(most)s::text::interval
        THEN l.before ELSE %(most)s::text END,
    true)
FROM (SELECT pg_catalog.current_setting('lock_timeout')) l (before)
"""
# Each table that a worker reads has an index for it. With these settings the planner uses this index,
# whatever the statistics say.
# No SELECT, because SET TRANSACTION may follow.
STEADY_PLANS: Final[LiteralString] = """
SET LOCAL plan_cache_mode = force_custom_plan;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_mergejoin = off;
-- A forbidden plan that is the only one has a huge cost, and the server would compile it.
SET LOCAL jit = off
"""
WITHOUT_TIME_LIMITS: Final[LiteralString] = """
SELECT pg_catalog.set_config(name, '0', true) FROM pg_catalog.pg_settings
WHERE name IN ('statement_timeout', 'transaction_timeout')
"""

# The schema. These statements call no function of the schema, so they work at every revision.

LOCK_MIGRATIONS: Final[LiteralString] = (
    "/* textsim-db: wait for a migration */ SELECT pg_advisory_xact_lock(%s)"
)
SET_LOCALLY: Final[LiteralString] = "SELECT pg_catalog.set_config(%s, %s, true)"
HAS_REVISION: Final[LiteralString] = (
    "SELECT pg_catalog.to_regclass('textsim.alembic_version') IS NOT NULL"
)
REVISION: Final[LiteralString] = "SELECT version_num FROM textsim.alembic_version"
HAS_CLIENTS: Final[LiteralString] = (
    "SELECT to_regprocedure('textsim._served_revisions()') IS NOT NULL"
)
SERVES: Final[LiteralString] = "SELECT %s = ANY (textsim._served_revisions())"
HAS_SCHEMA: Final[LiteralString] = "SELECT pg_catalog.to_regnamespace('textsim') IS NOT NULL"
HAS_CORPORA: Final[LiteralString] = "SELECT pg_catalog.to_regclass('textsim.corpus') IS NOT NULL"
IS_EXTENSION: Final[LiteralString] = (
    "SELECT EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'textsim')"
)
CORPUS_IDS: Final[LiteralString] = "SELECT id FROM textsim.corpus ORDER BY id"
SOURCE_IDS: Final[LiteralString] = "SELECT id FROM textsim.source WHERE corpus_id = %s"
DROP_TRIGGER_FUNCTION: Final[LiteralString] = "DROP FUNCTION IF EXISTS {}() CASCADE"
FORGET_SOURCES: Final[LiteralString] = "DELETE FROM textsim.source WHERE corpus_id = %s"
FORGET_CORPUS: Final[LiteralString] = "DELETE FROM textsim.corpus WHERE id = %s"
DROP_RELATIONS: Final[LiteralString] = "DROP TABLE IF EXISTS {}"
KEEP_OWNER: Final[LiteralString] = (
    "SELECT textsim.set_owner(nspowner::regrole) FROM pg_namespace WHERE nspname = 'textsim'"
)

# Corpora

UNEXPIRED: Final[LiteralString] = " AND (d.expires_at IS NULL OR d.expires_at > pg_catalog.now())"
NOT_REJECTED: Final[LiteralString] = " AND d.rejected IS NULL"
WORDS_WAIT: Final = "d.word_ids IS NULL"
LANGUAGE_WAITS: Final = "d.language IS NULL"
NOTHING_WAITS: Final = "false"
"""The conditions {waits} of StoredCorpus.statement()."""


def _common(condition: LiteralString) -> LiteralString:
    """Return an expression for the values and classes of common shingles; NULL if there are none."""
    return (
        "(SELECT ARRAY[pg_catalog.array_send(pg_catalog.array_agg(k.value ORDER BY k.value)), "
        "pg_catalog.array_send(pg_catalog.array_agg(k.class ORDER BY k.value))] "
        f"FROM textsim.common k WHERE k.corpus_id = corpus.id AND {condition} "
        "HAVING pg_catalog.count(*) > 0)"
    )


# A later version may add a column, and a prepared statement with corpus.* would fail from then on.
_COLUMNS: Final[LiteralString] = (
    "id, name, unit, shingle_length, threshold, recall, num_hashes, bands, rows, seed, recipe, "
    "stop_words, language, stop_words_by_language, is_unique, unique_from, scoped, keep_for, "
    "boilerplate, passages, common_passages, guards, guard_words, guard_fillers, golden_signature, "
    "golden_buckets, "
    "pg_catalog.to_jsonb(corpus) AS stored, coalesce(origin, id) AS first_id, "
    "textsim._guard_lists_of(corpus) AS guard_lists, "
    "(extract(epoch FROM keep_for) * 1000000.0)::bigint AS microseconds_kept, "
    "ARRAY(SELECT pg_catalog.unnest(b.shingle_values) FROM textsim.boilerplate b "
    "WHERE b.corpus_id = corpus.id) AS boilerplate_values, "
    f"{_common('NOT k.of_passages')} AS common, {_common('k.of_passages')} AS common_of_passages"
)
CORPUS_BY_NAME: Final[LiteralString] = f"SELECT {_COLUMNS} FROM textsim.corpus WHERE name = %s"
CORPUS_BY_ID: Final[LiteralString] = f"SELECT {_COLUMNS} FROM textsim.corpus WHERE id = %s"
CORPORA: Final[LiteralString] = """
SELECT name, unit || ':' || shingle_length::text, threshold, recall, guards, scoped, is_unique
FROM textsim.corpus ORDER BY name COLLATE "C"
"""
CREATE_CORPUS: Final[LiteralString] = (
    "SELECT textsim._create_corpus(pg_catalog.jsonb_populate_record(NULL::textsim.corpus, %s))"
)
ALTER_CORPUS: Final[LiteralString] = "UPDATE textsim.corpus SET {} WHERE id = %s"
# check compares the settings with the settings that are recorded here.
LOCK_UNIQUE: Final[LiteralString] = """
/* textsim-db: lock a unique corpus */ SELECT textsim._lock_unique(%s, true)
"""
REMOVE_REJECTED: Final[LiteralString] = """
SELECT textsim._remove_documents(%s, array(SELECT d.key FROM {document} d WHERE d.rejected IS NOT NULL))
"""
RECORD_SETTINGS: Final[LiteralString] = """
UPDATE textsim.corpus c
SET created_with = c.created_with || (
    SELECT pg_catalog.jsonb_object_agg(s.key, s.value)
    FROM pg_catalog.jsonb_each(textsim._settings(c)) s WHERE s.key = ANY (%s))
WHERE c.id = %s
"""
MAKE_FUNCTIONS: Final[LiteralString] = "SELECT textsim._make_functions(%s)"
MAKE_TRIGGER_FUNCTIONS: Final[LiteralString] = """
SELECT textsim._make_trigger_function(s) FROM textsim.source s WHERE s.corpus_id = %s AND s.active
"""
INSERT_COMMON: Final[LiteralString] = """
INSERT INTO textsim.common (corpus_id, of_passages, value, class)
SELECT %s, %s, value, class FROM unnest(%s::bigint[], %s::smallint[]) q (value, class)
"""
INSERT_BOILERPLATE: Final[LiteralString] = "INSERT INTO textsim.boilerplate VALUES (%s, %s)"
LOCK_CORPUS_BY_NAME: Final[LiteralString] = (
    "SELECT id FROM textsim.corpus WHERE name = %s FOR UPDATE"
)
LOCK_CORPUS_BY_ID: Final[LiteralString] = "SELECT id FROM textsim.corpus WHERE id = %s FOR UPDATE"
DROP_CORPUS: Final[LiteralString] = (
    "/* textsim-db: drop a corpus */ SELECT textsim._drop_corpus(%s)"
)

# The band index of a corpus

LOCK_BANDS: Final[LiteralString] = "LOCK TABLE {band}"
LOCK_BANDS_AGAINST_WRITERS: Final[LiteralString] = "LOCK TABLE {band} IN SHARE ROW EXCLUSIVE MODE"
LOCK_PASSAGES: Final[LiteralString] = "LOCK TABLE {passage}"
LOCK_PASSAGES_AGAINST_WRITERS: Final[LiteralString] = (
    "LOCK TABLE {passage} IN SHARE ROW EXCLUSIVE MODE"
)
HAS_DOCUMENTS: Final[LiteralString] = "SELECT EXISTS (SELECT FROM {document})"
HAS_BAND_INDEX: Final[LiteralString] = "SELECT pg_catalog.to_regclass({index_name}) IS NOT NULL"
DROP_BAND_INDEX: Final[LiteralString] = "DROP INDEX textsim.{index}"
BUILD_BAND_INDEX: Final[LiteralString] = """
/* textsim-db: build the band index of corpus {id} */
CREATE INDEX IF NOT EXISTS {index} ON {band} (bucket, document_id)
WITH (deduplicate_items = off)
"""
# In a corpus with passages, the index on the fingerprints is dropped and built with the band index.
DROP_PASSAGE_INDEX: Final[LiteralString] = "DROP INDEX textsim.{passage_index}"
BUILD_PASSAGE_INDEX: Final[LiteralString] = """
/* textsim-db: build the index of the fingerprints of corpus {id} */
CREATE INDEX IF NOT EXISTS {passage_index} ON {passage} (fingerprint, document_id)
WITH (deduplicate_items = off, fillfactor = 95)
"""

# The dictionary of a corpus

# The subquery makes the planner look up each word by the index, even if it expects many rows.
# COLLATE "C" compares bytes.
SELECT_WORDS: Final[LiteralString] = """
/* textsim-db: find words in the dictionary */
SELECT pg_catalog.array_send(ARRAY(
    SELECT coalesce((
        SELECT w.id FROM {word} w WHERE w.hash = q.hash AND w.word = q.word COLLATE "C"), 0)
    FROM unnest(%s::bigint[], %s::text[]) WITH ORDINALITY q (hash, word, number)
    ORDER BY q.number))
"""
# All writers insert in the order of the hashes, so that they cannot deadlock.
ADD_NEW_WORDS: Final[LiteralString] = """
/* textsim-db: add words to the dictionary */
WITH added AS (
    INSERT INTO {word} (hash, word)
    SELECT hash, word FROM unnest(%s::bigint[], %s::text[]) q (hash, word) ORDER BY hash
    RETURNING hash, id
)
SELECT pg_catalog.array_send(pg_catalog.array_agg(hash ORDER BY hash)),
    pg_catalog.array_send(pg_catalog.array_agg(id ORDER BY hash))
FROM added
"""
ADD_MISSING_WORDS: Final[LiteralString] = ADD_NEW_WORDS.replace(
    "RETURNING", "ON CONFLICT (hash) DO NOTHING RETURNING"
)
# Documents will refer to a word by its id. If a crash lost the word, another word could get the id. So
# the commit is durable even if the role has set synchronous_commit = off.
DURABLE: Final[LiteralString] = """
SELECT pg_catalog.set_config('synchronous_commit', 'on', true)
WHERE pg_catalog.current_setting('synchronous_commit') = 'off'
"""
WORDS_BY_ID: Final[LiteralString] = """
/* textsim-db: read the dictionary */
SELECT id, word FROM {word} WHERE id = ANY (%s::integer[])
"""
LAST_WORD_ID: Final[LiteralString] = "SELECT coalesce(max(id), 0) FROM {word}"
# Writers of one corpus wait here for each other. They hold no other lock while they wait.
QUEUE_OF_WRITERS: Final[LiteralString] = """
/* textsim-db: wait for other writers of the corpus */
SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext('textsim-db writers'), %s::integer)
"""
