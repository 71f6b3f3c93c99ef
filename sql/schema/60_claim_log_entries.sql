-- The log of changes, textsim.pending: what a worker, or index_pending, takes from it.
--
-- The log is empty most of the time and huge after a bulk load, and its statistics are always of another moment. So no
-- plan may depend on them, and these functions leave the planner only the plan that walks an index.

-- Whether a lease is over, or void: leases take a minute, so one that ends much later was taken by a clock that was ahead.
CREATE OR REPLACE FUNCTION textsim._is_ready(lease_until timestamptz) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
RETURN coalesce(lease_until NOT BETWEEN now() AND now() + interval '1 hour', true);

-- Lock the next entries of these kinds after an id, up to a number of keys: those of the sources, and those for the
-- words of corpora.
CREATE OR REPLACE FUNCTION textsim._ready_entries(
    kinds text[], sources integer[], excluded integer[], after bigint, most integer, of_one_source boolean)
RETURNS TABLE (id bigint, kind text, source_id integer)
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
DECLARE
    size bigint := 0;
    first_kind text;
    first_source integer;
    entry record;
BEGIN
    FOR entry IN
        SELECT p.id, p.kind, p.source_id, greatest(cardinality(p.keys), 1) AS size
        FROM textsim.pending p
        WHERE p.id > after AND p.kind NOT IN ('failed', 'cluster') AND p.kind = ANY (kinds)
            AND textsim._is_ready(p.lease_until)
            AND CASE p.kind WHEN 'words' THEN p.corpus_id <> ALL (excluded)
                ELSE p.source_id = ANY (sources) END
        ORDER BY p.id
        FOR UPDATE SKIP LOCKED
    LOOP
        first_kind := coalesce(first_kind, entry.kind);
        first_source := coalesce(first_source, entry.source_id);
        EXIT WHEN of_one_source
            AND (entry.kind <> first_kind OR entry.source_id IS DISTINCT FROM first_source);
        id := entry.id;
        kind := entry.kind;
        source_id := entry.source_id;
        RETURN NEXT;
        size := size + entry.size;
        EXIT WHEN size >= most;
    END LOOP;
END $$;

-- Lease the next entries of the log for some seconds; every_corpus: entries for words of other corpora too.
CREATE OR REPLACE FUNCTION textsim._claim(
    sources integer[], every_corpus boolean, excluded integer[], after bigint, most integer, lease double precision)
RETURNS SETOF textsim.pending
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
    -- The entries of a dropped corpus are claimed too: the worker deletes them.
    refused integer[] := excluded || array(
        SELECT c.id FROM textsim.corpus c
        WHERE NOT has_table_privilege(to_regclass('textsim.document_' || c.id), 'UPDATE')
            OR NOT every_corpus AND NOT EXISTS (
                SELECT FROM textsim.source s WHERE s.id = ANY (sources) AND s.corpus_id = c.id));
    ids bigint[] := array(
        SELECT e.id FROM textsim._ready_entries(
            '{change,compare,words}', sources, refused, after, most, false) e);
BEGIN
    RETURN QUERY UPDATE textsim.pending p
    SET lease_until = now() + make_interval(secs => lease), tries = p.tries + 1
    WHERE p.id = ANY (ids)
    RETURNING p.*;
END $$;

CREATE OR REPLACE FUNCTION textsim._delete_entries(entries bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $$
BEGIN
    DELETE FROM textsim.pending p WHERE p.id = ANY (entries);
END $$;

-- Lease claimed entries for some seconds from now, 0 to release them; uncounted_tries are taken back.
CREATE OR REPLACE FUNCTION textsim._lease_entries(entries bigint[], lease double precision, uncounted_tries integer)
RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $$
BEGIN
    UPDATE textsim.pending p
    SET lease_until = now() + make_interval(secs => lease),
        tries = greatest(p.tries - uncounted_tries, 0)
    WHERE p.id = ANY (entries);
END $$;
