-- Attached tables, and the log of what has changed in them.

CREATE TABLE textsim.source (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    corpus_id integer NOT NULL REFERENCES textsim.corpus,
    relation regclass NOT NULL,
    key_column name NOT NULL,
    key_type regtype NOT NULL,
    text_column name NOT NULL,
    mode text NOT NULL CHECK (mode IN ('queue', 'inline')),
    active boolean NOT NULL DEFAULT false,
    shape text[] NOT NULL DEFAULT '{}',
    attached_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT source_corpus_relation_key UNIQUE (corpus_id, relation)
);
COMMENT ON TABLE textsim.source
    IS 'tables of the users that are kept indexed, and those that were: their documents keep the id';
COMMENT ON COLUMN textsim.source.id IS 'number in the name of the trigger function _changes_N';
COMMENT ON COLUMN textsim.source.corpus_id IS 'where the rows are indexed';
COMMENT ON COLUMN textsim.source.relation IS 'the attached table';
COMMENT ON COLUMN textsim.source.key_column IS 'the column that gives the keys of the documents';
COMMENT ON COLUMN textsim.source.key_type IS 'its type, or the type that its domain is made of';
COMMENT ON COLUMN textsim.source.text_column IS 'the column that gives the texts';
COMMENT ON COLUMN textsim.source.mode
    IS 'queue: a worker indexes what changed; inline: the transaction that changes it does';
COMMENT ON COLUMN textsim.source.active
    IS 'whether the table is attached: its triggers have been seen in place';
COMMENT ON COLUMN textsim.source.shape
    IS 'files of the table and state of its triggers when it was last compared with its documents';
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
CREATE INDEX pending_comparison ON textsim.pending (source_id) WHERE keys IS NULL AND error IS NULL;
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
