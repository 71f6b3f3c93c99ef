-- A step holds only what CREATE OR REPLACE cannot do: ALTER, DROP, UPDATE. The files of sql/schema run after the last one.

DELETE FROM textsim.installed;  -- the files record all objects as they are then
DROP FUNCTION textsim._record_catalog();

CREATE FUNCTION textsim._guard_kinds() RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '{numbers,negations,words}'::text[];
ALTER TABLE textsim.corpus DROP CONSTRAINT corpus_guards_check,
    ADD CONSTRAINT corpus_guards_check CHECK (guards <@ textsim._guard_kinds());
DROP FUNCTION textsim._expire(text);
ALTER TABLE textsim.pending ADD COLUMN leased_at timestamptz;
