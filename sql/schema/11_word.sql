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
