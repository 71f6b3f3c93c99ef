-- An INSERT that skips near-duplicates, in tables that are attached with on_duplicate 'skip'.
--
-- A BEFORE ROW trigger decides, so it writes the document before the row exists: the next row of the statement
-- must find it. This document is a proposal. The statement may still leave the row out (ON CONFLICT, or a
-- later trigger that returns NULL), or store another text. So the AFTER STATEMENT trigger removes the
-- proposals that were not inserted, and writes the rows that were not proposed.
--
-- An entry of textsim.pending with the negative id of the source lists a proposal: its key, and the md5 of its
-- text, or "settled" after an UPDATE (of ON CONFLICT, or a trigger) or a DELETE of the row. No other
-- transaction ever sees the entry, because the statement that makes it deletes it.

-- Private functions

-- An INSERT may run inside another INSERT of the table. Each has its own place in the log, and the last of the
-- list is that of the innermost.
CREATE FUNCTION textsim._inserts(source integer) RETURNS bigint[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN coalesce(nullif(current_setting('textsim.inserts_' || source, true), ''), '{}');
END $$;
COMMENT ON FUNCTION textsim._inserts(integer)
    IS 'where the log was when each running INSERT of an attached table began';

CREATE FUNCTION textsim._begin_insert(source integer) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM set_config('textsim.inserts_' || source,
        (textsim._inserts(source) || nextval('textsim.pending_id_seq'))::text, true);
END $$;
COMMENT ON FUNCTION textsim._begin_insert(integer)
    IS 'note that an INSERT of an attached table begins';

CREATE FUNCTION textsim._propose_document(
    corpus_id integer, source integer, document_key text, body text)
RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    c textsim.corpus := textsim._attached_corpus(corpus_id);
    is_written boolean;
BEGIN
    IF body IS NULL THEN
        RETURN true;
    END IF;
    PERFORM textsim._check_document(document_key, body);
    -- The row of a key that exists may not be inserted, so its document must stay.
    is_written := textsim._write_document(c, source, document_key, body, policy => 'propose');
    IF is_written THEN
        INSERT INTO textsim.pending (kind, corpus_id, source_id, keys)
        VALUES ('change', c.id, -source, ARRAY[document_key, md5(body)]);
    END IF;
    RETURN is_written IS NOT NULL;
END $$;
COMMENT ON FUNCTION textsim._propose_document(integer, integer, text, text)
    IS 'write the document of a row that may be inserted; false if the row must be skipped';

CREATE FUNCTION textsim._settle_proposal(source integer, document_key text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    first_entry bigint := (textsim._inserts(source))[1];
BEGIN
    IF first_entry IS NULL OR document_key IS NULL THEN
        RETURN;
    END IF;
    DELETE FROM textsim.pending p
    WHERE p.id >= first_entry AND p.source_id = -source AND p.keys[1] = document_key;
    INSERT INTO textsim.pending (kind, corpus_id, source_id, keys)
    SELECT 'change', s.corpus_id, -source, ARRAY[document_key, 'settled'] FROM textsim.source s WHERE s.id = source;
END $$;
COMMENT ON FUNCTION textsim._settle_proposal(integer, text)
    IS 'note that an UPDATE or DELETE inside an INSERT has decided what the document of a key is';

CREATE FUNCTION textsim._withdraw_proposals(
    c textsim.corpus, source integer, document_key text, body text)
RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    first_entry bigint := (textsim._inserts(source))[1];
BEGIN
    IF first_entry IS NULL THEN
        RETURN false;
    END IF;
    PERFORM textsim._remove_document(c, source, t.key)
    FROM textsim._twins(c, document_key, body) t
    JOIN textsim.pending p ON p.keys[1] = t.key
    WHERE p.id >= first_entry AND p.source_id = -source AND p.keys[2] <> 'settled';
    RETURN FOUND;
END $$;
COMMENT ON FUNCTION textsim._withdraw_proposals(textsim.corpus, integer, text, text)
    IS 'remove proposed documents that match a text; the end of their INSERT writes those that were inserted';

CREATE FUNCTION textsim._end_insert(corpus_id integer, source integer, inserted jsonb)
RETURNS text[]
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    c textsim.corpus := textsim._attached_corpus(corpus_id);
    inserts bigint[] := textsim._inserts(source);
    proposed jsonb;
    unwritten text[];
BEGIN
    PERFORM set_config(
        'textsim.inserts_' || source, inserts[:cardinality(inserts) - 1]::text, true);
    WITH entry AS (
        DELETE FROM textsim.pending p
        WHERE p.id >= inserts[cardinality(inserts)] AND p.source_id = -source
        RETURNING p.keys
    )
    SELECT coalesce(jsonb_object_agg(e.keys[1], e.keys[2]), '{}') INTO proposed FROM entry e;
    PERFORM textsim._remove_document(c, source, p.key)
    FROM jsonb_each_text(proposed) p (key, digest)
    WHERE p.digest <> 'settled' AND inserted ->> p.key IS DISTINCT FROM p.digest;
    EXECUTE format($query$
        SELECT array(
            SELECT i.key FROM jsonb_each_text($1) i (key, digest)
            WHERE $2 ->> i.key IS DISTINCT FROM 'settled' AND (
                i.digest IS DISTINCT FROM $2 ->> i.key
                OR NOT EXISTS (SELECT FROM textsim.%I d WHERE d.key = i.key)))
        $query$, 'document_' || c.id) INTO unwritten USING inserted, proposed;
    RETURN unwritten;
END $$;
COMMENT ON FUNCTION textsim._end_insert(integer, integer, jsonb)
    IS 'remove the proposals that an INSERT left out, and return the keys of rows without their document; '
    'inserted: the md5 of each inserted text, by key';
