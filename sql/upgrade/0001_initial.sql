-- The schema, and one row for each corpus: its configuration, complete, so that nothing about
-- a stored signature is left to a default of the code that reads it.

CREATE SCHEMA IF NOT EXISTS textsim;
COMMENT ON SCHEMA textsim IS 'near-duplicate text search (textsim-db)';

CREATE TABLE textsim.corpus (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name <> ''),
    unit text NOT NULL CHECK (unit IN ('word', 'char')),
    shingle_length integer NOT NULL CHECK (shingle_length >= 1),
    threshold double precision NOT NULL CHECK (threshold > 0 AND threshold <= 1),
    recall double precision NOT NULL CHECK (recall > 0 AND recall <= 1),
    num_hashes integer NOT NULL CHECK (num_hashes >= 1),
    bands integer NOT NULL CHECK (bands >= 1),
    rows integer NOT NULL CHECK (rows >= 1),
    seed bigint NOT NULL CHECK (seed >= 0),
    recipe integer NOT NULL,
    stop_words text[] NOT NULL DEFAULT '{}',
    language text CHECK (language = 'auto'),
    stop_words_by_language jsonb NOT NULL DEFAULT '{}',
    a bigint[] NOT NULL,
    b bigint[] NOT NULL,
    golden_signature integer[] NOT NULL,
    golden_buckets bigint[] NOT NULL,
    origin integer,
    created_at timestamptz NOT NULL DEFAULT now(),
    CHECK (bands * rows <= num_hashes),
    CHECK (cardinality(a) = num_hashes AND cardinality(b) = num_hashes),
    CHECK (stop_words_by_language = '{}' OR language = 'auto' AND stop_words = '{}')
);
COMMENT ON TABLE textsim.corpus IS 'a named collection of documents with one configuration';
COMMENT ON COLUMN textsim.corpus.id IS 'number in the names of the partitions document_N and band_N';
COMMENT ON COLUMN textsim.corpus.name IS 'the name that users give';
COMMENT ON COLUMN textsim.corpus.unit IS 'what a shingle consists of: word or char';
COMMENT ON COLUMN textsim.corpus.shingle_length IS 'consecutive words or characters in a shingle';
COMMENT ON COLUMN textsim.corpus.threshold IS 'Jaccard similarity from which a candidate is a match';
COMMENT ON COLUMN textsim.corpus.recall IS 'probability that a pair at the threshold becomes a candidate';
COMMENT ON COLUMN textsim.corpus.num_hashes IS 'values in a signature';
COMMENT ON COLUMN textsim.corpus.bands IS 'buckets of a document';
COMMENT ON COLUMN textsim.corpus.rows IS 'signature values in a band';
COMMENT ON COLUMN textsim.corpus.seed IS 'seed of the coefficients';
COMMENT ON COLUMN textsim.corpus.recipe IS 'version of the way from text to buckets';
COMMENT ON COLUMN textsim.corpus.stop_words IS 'words, in normal form and order, that are left out of texts';
COMMENT ON COLUMN textsim.corpus.language
    IS 'auto: the language of each document is identified; NULL: it is not';
COMMENT ON COLUMN textsim.corpus.stop_words_by_language
    IS 'instead of stop_words: those left out of the texts of each language';
COMMENT ON COLUMN textsim.corpus.a IS 'factors of the hash functions (a * x + b) mod (2^31 - 1)';
COMMENT ON COLUMN textsim.corpus.b IS 'summands of the hash functions';
COMMENT ON COLUMN textsim.corpus.golden_signature IS 'signature of a fixed text, checked when the corpus is opened';
COMMENT ON COLUMN textsim.corpus.golden_buckets IS 'buckets of the same text';
COMMENT ON COLUMN textsim.corpus.origin
    IS 'the number that the corpus had before it was rebuilt; NULL where it never was';
COMMENT ON COLUMN textsim.corpus.created_at IS 'when the corpus was created';
-- The dictionary: one integer for each word, shared by all corpora. Unique on the hash and not
-- on the word, because a B-tree refuses entries over 2,700 bytes and words can be that long.

CREATE TABLE textsim.word (
    hash bigint NOT NULL,
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    word text NOT NULL,
    CONSTRAINT word_hash_key UNIQUE (hash),
    -- Every writer writes here: under the hash of another word it would keep that one out.
    CONSTRAINT word_hash_check CHECK (hash = hashtextextended(word, 0))
);
COMMENT ON TABLE textsim.word IS 'the dictionary of all corpora; ids are never reused or changed';
COMMENT ON COLUMN textsim.word.hash IS 'hashtextextended(word, 0)';
COMMENT ON COLUMN textsim.word.id IS 'what stands for the word in document.word_ids';
COMMENT ON COLUMN textsim.word.word IS 'a word of the normal form';
-- Documents and their band rows, one partition a corpus. The partitions carry the indexes
-- (see 40_storage.sql): there the corpus is a constant, and would only make each entry longer.

CREATE SEQUENCE textsim.document_id AS bigint;
COMMENT ON SEQUENCE textsim.document_id IS 'ids of documents, over all corpora';

CREATE TABLE textsim.document (
    corpus_id integer NOT NULL,
    shingle_count integer NOT NULL,
    id bigint NOT NULL,
    source_id integer,
    key text NOT NULL,
    language text,
    word_ids integer[],
    signature integer[] NOT NULL,
    normal_form text,
    -- Which of the two says what the document consists of.
    CHECK ((word_ids IS NULL) <> (normal_form IS NULL))
) PARTITION BY LIST (corpus_id);
-- Arrays of random numbers do not compress; trying to costs more than it saves.
ALTER TABLE textsim.document ALTER COLUMN word_ids SET STORAGE EXTERNAL;
ALTER TABLE textsim.document ALTER COLUMN signature SET STORAGE EXTERNAL;
COMMENT ON TABLE textsim.document IS 'documents: their words in order and their MinHash signature';
COMMENT ON COLUMN textsim.document.corpus_id IS 'the corpus that the document belongs to';
COMMENT ON COLUMN textsim.document.shingle_count IS 'distinct shingles';
COMMENT ON COLUMN textsim.document.id IS 'what band rows refer to';
COMMENT ON COLUMN textsim.document.source_id IS 'the attached table that the document comes from';
COMMENT ON COLUMN textsim.document.key IS 'the key that the user chose';
COMMENT ON COLUMN textsim.document.language
    IS 'by ISO 639, und where undetermined; NULL until a worker has identified it, or if none does';
COMMENT ON COLUMN textsim.document.word_ids IS 'the words of the normal form, in order';
COMMENT ON COLUMN textsim.document.normal_form
    IS 'instead of word_ids, until a worker has given the words ids; NULL after that';
COMMENT ON COLUMN textsim.document.signature IS 'num_hashes values; none for a text without words';

CREATE TABLE textsim.band (
    corpus_id integer NOT NULL,
    band smallint NOT NULL,
    bucket bigint NOT NULL,
    document_id bigint NOT NULL
) PARTITION BY LIST (corpus_id);
COMMENT ON TABLE textsim.band IS 'the LSH buckets of each document: who shares one is a candidate';
COMMENT ON COLUMN textsim.band.corpus_id IS 'the corpus that the document belongs to';
COMMENT ON COLUMN textsim.band.band IS 'number of the band, from 0';
COMMENT ON COLUMN textsim.band.bucket IS 'hash_array_extended of the band''s signature values, seeded by the band';
COMMENT ON COLUMN textsim.band.document_id IS 'the document that is in the bucket';
-- Attached tables, and the log of what has changed in them.

CREATE TABLE textsim.source (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    corpus_id integer NOT NULL REFERENCES textsim.corpus,
    relation regclass NOT NULL,
    key_column name NOT NULL,
    text_column name NOT NULL,
    mode text NOT NULL CHECK (mode IN ('queue', 'inline')),
    active boolean NOT NULL DEFAULT false,
    attached_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT source_corpus_relation_key UNIQUE (corpus_id, relation)
);
COMMENT ON TABLE textsim.source IS 'tables of the users that are kept indexed';
COMMENT ON COLUMN textsim.source.id IS 'number in the name of the trigger function _changes_N';
COMMENT ON COLUMN textsim.source.corpus_id IS 'where the rows are indexed';
COMMENT ON COLUMN textsim.source.relation IS 'the attached table';
COMMENT ON COLUMN textsim.source.key_column IS 'the column that gives the keys of the documents';
COMMENT ON COLUMN textsim.source.text_column IS 'the column that gives the texts';
COMMENT ON COLUMN textsim.source.mode
    IS 'queue: a worker indexes what changed; inline: the transaction that changes it does';
COMMENT ON COLUMN textsim.source.active IS 'whether the triggers have been seen in place';
COMMENT ON COLUMN textsim.source.attached_at IS 'when the table was attached';

-- An append-only log: an upsert for each key would make transactions of the users wait for each
-- other. No foreign keys, which would lock rows in those transactions.
CREATE TABLE textsim.pending (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    corpus_id integer NOT NULL,
    source_id integer,
    keys text[],
    created_at timestamptz NOT NULL DEFAULT now(),
    lease_until timestamptz,
    tries integer NOT NULL DEFAULT 0,
    error text,
    -- Writers of any corpus write here, and a row that no worker can take would end all of them.
    CHECK (corpus_id > 0 AND tries BETWEEN 0 AND 1000),
    CHECK (source_id IS NOT NULL OR keys IS NOT NULL),
    CHECK (array_ndims(keys) = 1 AND array_position(keys, NULL) IS NULL)
);
CREATE INDEX pending_error ON textsim.pending (corpus_id) WHERE error IS NOT NULL;
ALTER TABLE textsim.pending ALTER COLUMN keys SET STORAGE EXTERNAL;
-- Rows come and go: what is gone must not be read again and again.
ALTER TABLE textsim.pending SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
COMMENT ON TABLE textsim.pending IS 'what a worker has to index yet: one row for each change';
COMMENT ON COLUMN textsim.pending.id IS 'number in the log';
COMMENT ON COLUMN textsim.pending.corpus_id IS 'where it is to be indexed';
COMMENT ON COLUMN textsim.pending.source_id
    IS 'the table in which rows changed; NULL: the words of stored documents need ids';
COMMENT ON COLUMN textsim.pending.keys IS 'the keys that changed; NULL: any of the table';
COMMENT ON COLUMN textsim.pending.created_at IS 'start of the transaction that changed them';
COMMENT ON COLUMN textsim.pending.lease_until IS 'until then a worker has it in hand';
COMMENT ON COLUMN textsim.pending.tries IS 'how often a worker has taken it';
COMMENT ON COLUMN textsim.pending.error IS 'why it was set aside; NULL where it was not';

CREATE SEQUENCE textsim.last_notice AS bigint MINVALUE 0;
COMMENT ON SEQUENCE textsim.last_notice IS 'milliseconds of the last NOTIFY, to limit their rate';
-- Making and dropping the partitions of a corpus. Private: called by the functions and clients
-- that create and drop corpora.

CREATE FUNCTION textsim._grant_like(parent regclass, partition regclass) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    entry record;
BEGIN
    FOR entry IN
        SELECT a.grantee, a.privilege_type
        FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
        WHERE c.oid = parent AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('GRANT %s ON TABLE %s TO %s', entry.privilege_type, partition,
            CASE entry.grantee WHEN 0 THEN 'PUBLIC' ELSE entry.grantee::regrole::text END);
    END LOOP;
END
$$;
COMMENT ON FUNCTION textsim._grant_like(regclass, regclass)
    IS 'grant on a partition what is granted on its parent: partitions are read directly';

CREATE FUNCTION textsim._create_storage(corpus_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    document_table text := format('document_%s', corpus_id);
    band_table text := format('band_%s', corpus_id);
BEGIN
    -- Created apart and attached: CREATE TABLE ... PARTITION OF would wait for every reader of
    -- every other corpus. Documents of up to some 1,500 words stay in their row, so that a
    -- look-up reads one page.
    EXECUTE format(
        'CREATE TABLE textsim.%I (LIKE textsim.document INCLUDING ALL) WITH (toast_tuple_target = 8160)',
        document_table);
    -- No condition is ever on these, and their statistics are what ANALYZE takes longest for.
    EXECUTE format(
        'ALTER TABLE textsim.%I ALTER word_ids SET STATISTICS 0, ALTER signature SET STATISTICS 0, '
        'ALTER normal_form SET STATISTICS 0', document_table);
    EXECUTE format('COMMENT ON TABLE textsim.%I IS %L', document_table, 'documents of one corpus');
    EXECUTE format('CREATE UNIQUE INDEX %I ON textsim.%I (id)', document_table || '_id', document_table);
    EXECUTE format('CREATE UNIQUE INDEX %I ON textsim.%I (key)', document_table || '_key', document_table);
    -- Vacuumed sooner than by default: at a fifth of dead rows the index takes twice what it needs.
    EXECUTE format(
        'CREATE TABLE textsim.%I (LIKE textsim.band INCLUDING ALL) '
        'WITH (autovacuum_vacuum_scale_factor = 0.05)', band_table);
    EXECUTE format('COMMENT ON TABLE textsim.%I IS %L', band_table, 'band rows of one corpus');
    -- A bucket is a hash seeded with its band: the band in it too would only make it larger.
    EXECUTE format(
        'CREATE INDEX %I ON textsim.%I (bucket, document_id)', band_table || '_bucket', band_table);
    EXECUTE format(
        'ALTER TABLE textsim.document ATTACH PARTITION textsim.%I FOR VALUES IN (%s)',
        document_table, corpus_id);
    EXECUTE format(
        'ALTER TABLE textsim.band ATTACH PARTITION textsim.%I FOR VALUES IN (%s)',
        band_table, corpus_id);
    PERFORM textsim._grant_like('textsim.document', format('textsim.%I', document_table)::regclass);
    PERFORM textsim._grant_like('textsim.band', format('textsim.%I', band_table)::regclass);
END
$$;
COMMENT ON FUNCTION textsim._create_storage(integer) IS 'create the partitions of a corpus';

CREATE FUNCTION textsim._drop_storage(corpus_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    document_table text := format('document_%s', corpus_id);
    band_table text := format('band_%s', corpus_id);
    alone boolean;
    patience interval := current_setting('lock_timeout')::interval;
    start timestamptz := clock_timestamp();
BEGIN
    -- DROP TABLE alone would lock the parents, and with them every other corpus, while it waits
    -- for who still uses this one. Searches lock band rows first: waiting there is safe. Who
    -- holds anything else may wait for that in turn: then let go, and try again.
    LOOP
        alone := false;
        BEGIN
            EXECUTE format('LOCK TABLE textsim.%I', band_table);
            alone := true;
            EXECUTE format('LOCK TABLE textsim.%I NOWAIT', document_table);
            LOCK TABLE ONLY textsim.document, ONLY textsim.band NOWAIT;
            EXIT;
        EXCEPTION WHEN lock_not_available THEN
            IF NOT alone OR patience > '0' AND clock_timestamp() > start + patience THEN
                RAISE;
            END IF;
            PERFORM pg_sleep(0.05 + random() * 0.05);
        END;
    END LOOP;
    EXECUTE format('DROP TABLE textsim.%I', document_table);
    EXECUTE format('DROP TABLE textsim.%I', band_table);
    -- A change that was logged while its table moved to a rebuilt corpus is still to be indexed.
    DELETE FROM textsim.pending p
    WHERE p.corpus_id = _drop_storage.corpus_id
        AND NOT EXISTS (SELECT FROM textsim.source s WHERE s.id = p.source_id);
END
$$;
COMMENT ON FUNCTION textsim._drop_storage(integer) IS 'drop the partitions of a corpus';
