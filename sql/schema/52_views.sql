-- Views over the candidate pairs of one corpus, or over the members of its tracked clusters. They name the relations
-- of the corpus, so the planner sees through them: a condition on a document, or a join on it, starts from it.
-- A rebuild moves the views to the new relations. A corpus with views cannot be dropped.

-- Private functions

CREATE FUNCTION textsim._views(corpus_id integer)
RETURNS TABLE (view regclass, is_movable boolean, of_members boolean)
LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1
BEGIN ATOMIC
    SELECT v.oid::regclass,
        -- Only the views of create_view and create_members_view use these objects and have these columns.
        CASE array(
            SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = v.oid AND a.attnum > 0 ORDER BY a.attnum)
            WHEN '{a,b,shared}' THEN bool_or(d.refobjid = to_regprocedure(
                'textsim._is_candidate(bigint, integer, integer, double precision)'))
            WHEN '{key,cluster,representative,similarity,crowded}' THEN count(DISTINCT d.refobjid) FILTER (
                WHERE d.refobjid IN (
                    SELECT to_regclass(format('textsim.%s_%s', t.pattern, corpus_id))
                    FROM unnest('{document,member,cluster,match,node,crowded}'::text[]) t (pattern))) = 6
            ELSE false
        END
        AND v.relkind = 'v'
        AND pg_has_role(v.relowner, 'USAGE') AND has_schema_privilege(v.relnamespace, 'CREATE'),
        bool_or(d.refobjid = to_regclass('textsim.member_' || corpus_id))
    FROM pg_depend d
    JOIN pg_rewrite r ON r.oid = d.objid
    JOIN pg_class v ON v.oid = r.ev_class
    WHERE d.classid = 'pg_rewrite'::regclass
    GROUP BY v.oid, v.relkind, v.relowner, v.relnamespace
    HAVING bool_or(d.refclassid = 'pg_class'::regclass AND d.refobjid IN (
        SELECT to_regclass(format('textsim.%s_%s', t.pattern, corpus_id))
        FROM unnest(string_to_array(textsim._corpus_patterns(), '|')) t (pattern)))
    ORDER BY v.oid::regclass::text;
END;
COMMENT ON FUNCTION textsim._views(integer)
    IS 'the views that read a corpus, whether a rebuild by this role can move each of them, and whether they read its '
    'tracked clusters';

CREATE FUNCTION textsim._refuse_views(corpus_id integer, except_movable boolean) RETURNS void
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    reader pg_class;
BEGIN
    SELECT r.* INTO reader FROM textsim._views(corpus_id) v JOIN pg_class r ON r.oid = v.view
    WHERE NOT (except_movable AND v.is_movable) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'view % reads the corpus%; drop the view first: DROP %VIEW %',
            reader.oid::regclass,
            CASE WHEN except_movable THEN ' and cannot follow a rebuild; expected a view of '
                'textsim.create_view or textsim.create_members_view that this role may replace' ELSE '' END,
            CASE reader.relkind WHEN 'm' THEN 'MATERIALIZED ' ELSE '' END, reader.oid::regclass
            USING ERRCODE = 'dependent_objects_still_exist';
    END IF;
END $$;
COMMENT ON FUNCTION textsim._refuse_views(integer, boolean)
    IS 'raise an error if a view reads a corpus; except_movable: only for views that a rebuild '
    'cannot move';

CREATE FUNCTION textsim._view_query(is_exact boolean) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN is_exact THEN $query$
        -- Documents share many rows, so each document counts those of its candidates.
        SELECT d.key AS a, e.key AS b, p.shared
        FROM textsim.%1$I d
        CROSS JOIN LATERAL (
            SELECT r.document_id, count(*)::integer AS shared
            FROM unnest(%6$s) q (bucket)
            JOIN textsim.%2$I r ON r.bucket = q.bucket AND r.document_id <> d.id
            GROUP BY r.document_id
        ) p
        JOIN textsim.%1$I e ON e.id = p.document_id
        WHERE textsim._is_candidate(p.shared, d.shingle_count, e.shingle_count, %5$L)%7$s
        $query$
    ELSE $query$
        -- A pair meets in each bucket that it shares, and is listed in the smallest of them. It is listed
        -- twice if a document has this bucket in two bands, which happens to one document in 28 million.
        -- The condition with # makes the planner expect one row in 200, about one pair for eleven
        -- documents. For an equality it would expect only a few rows in all.
        SELECT d.key AS a, e.key AS b, cardinality(s.shared) AS shared
        FROM textsim.%1$I d
        CROSS JOIN generate_series(0, %3$L - 1) q (band)
        JOIN textsim.%2$I r
            ON r.bucket = textsim._bucket(d.signature, %4$L, q.band) %8$s AND r.document_id <> d.id
        JOIN textsim.%1$I e ON e.id = r.document_id %7$s
        CROSS JOIN LATERAL (
            SELECT textsim._shared_buckets(
                textsim._buckets(d.signature, %3$L, %4$L), textsim._buckets(e.signature, %3$L, %4$L)
            ) AS shared
        ) s
        WHERE r.bucket # s.shared[1] %8$s = 0 AND d.signature <> '{}'
            AND textsim._is_candidate(
                cardinality(s.shared), d.shingle_count, e.shingle_count, NULL)
        $query$
END;
COMMENT ON FUNCTION textsim._view_query(boolean)
    IS 'the query of a view of candidate pairs, as a format for the relations and the settings';

CREATE FUNCTION textsim._write_view(
    c textsim.corpus, view_schema name, view_name name, of_members boolean, replaced regclass)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('CREATE %s VIEW %s %s AS ', CASE WHEN replaced IS NULL THEN '' ELSE 'OR REPLACE' END,
            format('%I.%I', view_schema, view_name),
            (SELECT 'WITH (' || array_to_string(r.reloptions, ', ') || ')' FROM pg_class r
             WHERE r.oid = replaced))
        || CASE WHEN of_members THEN textsim._members_query(c.id) ELSE format(textsim._view_query(c.bands IS NULL),
            'document_' || c.id, 'band_' || c.id, c.bands, c.rows, c.threshold,
            CASE WHEN c.scoped THEN 'textsim._in_scope(d.signature, d.scope)' ELSE 'd.signature' END,
            textsim._may_meet(c), CASE WHEN c.scoped THEN '# textsim._scope_hash(d.scope)' ELSE '' END) END;
END $$;
COMMENT ON FUNCTION textsim._write_view(textsim.corpus, name, name, boolean, regclass)
    IS 'create the view of the candidate pairs of a corpus, or of its members, or replace the given view by it';

CREATE FUNCTION textsim._exclude_rebuild(corpus text) RETURNS textsim.corpus
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    c textsim.corpus := textsim._required_corpus(corpus);
BEGIN
    IF NOT pg_try_advisory_xact_lock_shared(
        hashtextextended('textsim rebuild of corpus ' || c.id, 0))
    THEN
        RAISE EXCEPTION 'corpus "%" is being rebuilt; repeat the statement after the rebuild', corpus
            USING ERRCODE = 'object_in_use';
    END IF;
    IF c.id <> (textsim._required_corpus(corpus)).id THEN
        RAISE EXCEPTION 'corpus "%" has just been rebuilt; repeat the statement', corpus
            USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN c;
END $$;
COMMENT ON FUNCTION textsim._exclude_rebuild(text)
    IS 'the corpus with a name, which no session rebuilds before the end of the transaction; an error if one does now';

CREATE FUNCTION textsim._create_view(
    corpus text, view_name text, of_members boolean, default_schema text)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    c textsim.corpus;
    parts text[] := parse_ident(view_name);
BEGIN
    IF cardinality(parts) = 1 THEN
        parts := default_schema || parts;
    END IF;
    IF parts IS NULL OR cardinality(parts) <> 2 OR parts[1] IS NULL OR parts[1] ~ '^(textsim$|pg_)'
    THEN
        RAISE EXCEPTION 'the name of the view is %; expected name or schema.name, in a schema of '
            'your own', coalesce(quote_literal(view_name), 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Otherwise the view would read the old relations.
    c := textsim._exclude_rebuild(corpus);
    IF NOT has_table_privilege('textsim.document_' || c.id, 'SELECT')
        OR NOT has_table_privilege('textsim.band_' || c.id, 'SELECT')
    THEN
        RAISE EXCEPTION 'this role may not read corpus "%", and a view has the rights of its owner', corpus
            USING ERRCODE = 'insufficient_privilege',
                HINT = 'Let the owner of the schema call textsim.grant_reader for this role.';
    END IF;
    IF of_members THEN
        PERFORM textsim._tracking(c);
    END IF;
    PERFORM textsim._write_view(c, parts[1], parts[2], of_members, NULL);
    EXECUTE format('COMMENT ON VIEW %I.%I IS %L', parts[1], parts[2],
        format(CASE WHEN of_members THEN 'The members of the clusters of corpus "%s".'
            ELSE 'The candidate pairs of corpus "%s", each in both orders.' END, corpus));
END $$;
COMMENT ON FUNCTION textsim._create_view(text, text, boolean, text)
    IS 'the work of create_view(); default_schema is for a name without a schema';

CREATE FUNCTION textsim._move_views(old integer, new integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM textsim._refuse_views(old, true);
    IF EXISTS (SELECT FROM textsim.tracked t WHERE t.corpus_id = old) THEN
        PERFORM textsim._create_tracking_relations(new, old);
    END IF;
    PERFORM textsim._write_view(c, n.nspname, r.relname, v.of_members, v.view)
    FROM textsim._views(old) v
    JOIN pg_class r ON r.oid = v.view
    JOIN pg_namespace n ON n.oid = r.relnamespace
    CROSS JOIN textsim.corpus c
    WHERE c.id = new;
END $$;
COMMENT ON FUNCTION textsim._move_views(integer, integer)
    IS 'let the views of a corpus read another corpus, which gets the tables of a tracked corpus if they need them';

-- Public functions

CREATE FUNCTION textsim.create_view(corpus text, view_name text) RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
    SELECT textsim._create_view(corpus, view_name, false, current_schema()::text);
END;
COMMENT ON FUNCTION textsim.create_view(text, text)
    IS 'Creates a view (a, b, shared) of the candidate pairs of a corpus, each pair in both orders. A '
    'condition on a, or a join on it, looks up the pairs of those documents only. A rebuild of '
    'the corpus keeps the view.';
