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
