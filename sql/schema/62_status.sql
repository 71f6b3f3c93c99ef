-- How far a corpus is with its attached tables.

CREATE FUNCTION textsim._differing_rows(source textsim.source, OUT rows bigint)
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    documents text := format('textsim.%I', 'document_' || source.corpus_id);
    readable boolean := textsim._source_fault(source) IS NULL;
    key_type text := format_type(source.key_type, NULL);
    is_small boolean := (
        SELECT sum(pg_relation_size(p.oid)) < 67108864 FROM textsim._partitions(source.relation) p (oid));
BEGIN
    IF readable AND is_small THEN
        EXECUTE format($query$
            SELECT (
                SELECT count(*) FROM %1$s t
                WHERE t.%3$I IS NOT NULL
                    AND NOT EXISTS (SELECT FROM %5$s d WHERE d.key = t.%2$I::%4$s::text)
            ) + (
                SELECT count(*) FROM %5$s d
                WHERE d.source_id = $1 AND NOT EXISTS (
                    SELECT FROM %1$s t WHERE t.%2$I::%4$s::text = d.key AND t.%3$I IS NOT NULL)
            )
            $query$, source.relation, source.key_column, source.text_column, key_type, documents)
        INTO rows USING source.id;
        RETURN;
    END IF;
    -- As the planner does: the rows that ANALYZE found in a page, in as many pages as there are.
    SELECT sum(pg_relation_size(c.oid) / 8192
        * CASE WHEN c.relpages > 0 THEN c.reltuples / c.relpages ELSE 10 END)
    INTO rows
    FROM textsim._partitions(source.relation) p (oid) JOIN pg_class c ON c.oid = p.oid
    WHERE c.relkind = 'r';
    EXECUTE format('SELECT abs($1 - count(*)) FROM %s d WHERE d.source_id = $2', documents)
    INTO rows USING coalesce(rows, 0), source.id;
END
$$;
COMMENT ON FUNCTION textsim._differing_rows(textsim.source)
    IS 'rows without a document and documents without a row; of a table of over 64 MB an estimate';

CREATE FUNCTION textsim.status(corpus text)
RETURNS TABLE (
    indexed bigint, pending bigint, is_estimate boolean, oldest_pending timestamptz,
    pending_age interval, failed bigint, problems text[])
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
    logged bigint;
    compared bigint;
BEGIN
    EXECUTE format('SELECT count(*) FROM textsim.%I', 'document_' || c.id) INTO indexed;
    SELECT coalesce(sum(cardinality(p.keys)) FILTER (WHERE p.error IS NULL), 0),
        min(p.created_at) FILTER (WHERE p.error IS NULL),
        count(*) FILTER (WHERE p.error IS NOT NULL)
    INTO logged, oldest_pending, failed
    FROM textsim.pending p
    LEFT JOIN textsim.source s ON s.id = p.source_id
    -- Some may have been logged while the corpus was rebuilt.
    WHERE coalesce(s.corpus_id, p.corpus_id) = c.id;
    pending_age := greatest(clock_timestamp() - oldest_pending, '0');
    IF logged > 1000000 THEN
        pending := logged;
    ELSE
        SELECT count(DISTINCT k.key COLLATE "C") INTO pending
        FROM textsim.pending p
        LEFT JOIN textsim.source s ON s.id = p.source_id
        CROSS JOIN unnest(p.keys) k (key)
        WHERE coalesce(s.corpus_id, p.corpus_id) = c.id AND p.error IS NULL;
    END IF;
    SELECT sum(textsim._differing_rows(s)) INTO compared
    FROM textsim.source s
    WHERE s.corpus_id = c.id AND s.active AND EXISTS (
        SELECT FROM textsim.pending p
        WHERE p.source_id = s.id AND p.keys IS NULL AND p.error IS NULL);
    is_estimate := logged > 1000000 OR compared IS NOT NULL;
    pending := pending + coalesce(compared, 0);
    problems := array(
        SELECT format('table %s: %s', s.relation, p.problem)
        FROM textsim.source s CROSS JOIN LATERAL textsim._source_problems(s) p (problem)
        WHERE s.corpus_id = c.id AND s.active
        ORDER BY s.id, p.problem);
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION textsim.status(text)
    IS 'documents indexed, documents that are to be indexed (an estimate while a table is compared or a million changes are logged) since when, documents set aside with an error, and what is wrong with attached tables';
