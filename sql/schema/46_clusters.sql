-- Clusters of pairs. Documents are numbered from 1 in the order of their keys, and a link is a pair of numbers
-- with a similarity. A pair that was judged the same is a link that comes before all others, by its similarity.
-- The functions of the three linkages return the same: for each document the root of its cluster, and for each root
-- the weakest link of the cluster. In a loop, PL/pgSQL copies an array if an assignment to an element reads the array.

-- The similarity of a pair that was judged the same, which no pair of texts has.
CREATE OR REPLACE FUNCTION textsim._similarity_of_same() RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 2;

-- The connected components of links, and the weakest link of a maximum spanning tree of each component.
CREATE OR REPLACE FUNCTION textsim._single_linkage(
    lefts integer[], rights integer[], similarities double precision[], documents integer, OUT roots integer[],
    OUT weakest double precision[])
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    link record;
    x integer;
    y integer;
    parent integer;
BEGIN
    roots := array(SELECT generate_series(1, documents));
    weakest := array_fill(1::double precision, ARRAY[documents]);
    FOR link IN
        SELECT l.x, l.y, l.similarity FROM unnest(lefts, rights, similarities) l (x, y, similarity)
        ORDER BY l.similarity DESC
    LOOP
        x := link.x;
        WHILE roots[x] <> x LOOP
            parent := roots[x];
            parent := roots[parent];
            roots[x] := parent;
            x := parent;
        END LOOP;
        y := link.y;
        WHILE roots[y] <> y LOOP
            parent := roots[y];
            parent := roots[parent];
            roots[y] := parent;
            y := parent;
        END LOOP;
        IF x <> y THEN
            roots[greatest(x, y)] := least(x, y);
            weakest[least(x, y)] := link.similarity;
        END IF;
    END LOOP;
    roots := textsim._final_roots(roots);
END $$;

-- The root of each document of a forest, whose parents have lower numbers.
CREATE OR REPLACE FUNCTION textsim._final_roots(parents integer[]) RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    root integer;
BEGIN
    -- A parent is never above its child, so its root is known before.
    FOR document IN 1 .. cardinality(parents) LOOP
        root := parents[document];
        root := parents[root];
        parents[document] := root;
    END LOOP;
    RETURN parents;
END $$;

-- For each document the lowest of its copies, which have similarity 1 to it and the same other links.
CREATE OR REPLACE FUNCTION textsim._lowest_copies(
    lefts integer[], rights integer[], similarities double precision[], documents integer)
RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    copies record;
BEGIN
    WITH link AS MATERIALIZED (
        SELECT l.x, l.y, l.similarity FROM unnest(lefts, rights, similarities) l (x, y, similarity)
    ), equal AS MATERIALIZED (
        SELECT l.x, l.y FROM link l WHERE l.similarity = 1
    ), linked AS MATERIALIZED (
        SELECT o.x, array_agg(o.y ORDER BY o.y) AS others, array_agg(o.similarity ORDER BY o.y) AS similarities
        FROM (
            SELECT l.x, l.y, l.similarity FROM link l
            UNION ALL SELECT l.y, l.x, l.similarity FROM link l
            -- A document has similarity 1 to itself, so copies have the same links.
            UNION ALL SELECT k, k, 1 FROM generate_series(1, documents) k
        ) o
        WHERE o.x IN (SELECT e.x FROM equal e UNION ALL SELECT e.y FROM equal e)
        GROUP BY o.x
    )
    SELECT array_agg(e.x) AS lefts, array_agg(e.y) AS rights, array_agg(1::double precision) AS similarities
    INTO copies
    FROM equal e JOIN linked a ON a.x = e.x JOIN linked b ON b.x = e.y
    WHERE a.others = b.others AND a.similarities = b.similarities;
    RETURN (textsim._single_linkage(copies.lefts, copies.rights, copies.similarities, documents)).roots;
END $$;

-- Clusters in which every two documents are linked: links are added from the most similar downwards, and two clusters
-- merge when all their members are linked.
-- Two clusters can merge when the last link between their members was added. If a link is missing, they never
-- merge. So the link between two roots stands for all links between their clusters, as long as none is missing:
-- due[link] is the place of the last of them, or 0. Merging two clusters keeps the common neighbours of both.
CREATE OR REPLACE FUNCTION textsim._complete_linkage(
    lefts integer[], rights integer[], similarities double precision[], documents integer, OUT roots integer[],
    OUT weakest double precision[])
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    -- By place: the links, the most similar first.
    xs integer[];
    ys integer[];
    due integer[];
    merging integer[];  -- the link of two roots whose clusters merge at this place, or 0
    sorted_similarities double precision[];
    sets integer[];  -- by document: the lowest of its copies
    -- The links of each document, as a list. Each link is in two lists, as 2 * place - 1 and 2 * place.
    heads integer[] := array_fill(0, ARRAY[documents]);
    nexts integer[];
    -- The neighbours of the root that is merged into another at the place `marks`.
    marks integer[] := array_fill(0, ARRAY[documents]);
    due_of_neighbours integer[] := array_fill(0, ARRAY[documents]);
    x integer;
    y integer;
    neighbour integer;
    entry integer;
    link integer;
    last_place integer;
BEGIN
    roots := array(SELECT generate_series(1, documents));
    weakest := array_fill(1::double precision, ARRAY[documents]);
    sets := textsim._lowest_copies(lefts, rights, similarities, documents);
    SELECT array_agg(o.x), array_agg(o.y), array_agg(o.similarity)
    INTO xs, ys, sorted_similarities
    FROM (
        SELECT l.x, l.y, l.similarity FROM unnest(lefts, rights, similarities) l (x, y, similarity)
        -- Copies merge first, and links between the same two sets of copies stand together, as in Python.
        ORDER BY sets[l.x] <> sets[l.y], l.similarity DESC, least(sets[l.x], sets[l.y]),
            greatest(sets[l.x], sets[l.y]), l.x, l.y
    ) o;
    due := array(SELECT generate_series(1, cardinality(xs)));
    merging := due;
    nexts := array_fill(0, ARRAY[2 * cardinality(xs)]);
    FOR place IN 1 .. cardinality(xs) LOOP
        x := xs[place];
        entry := heads[x];
        nexts[2 * place - 1] := entry;
        heads[x] := 2 * place - 1;
        y := ys[place];
        entry := heads[y];
        nexts[2 * place] := entry;
        heads[y] := 2 * place;
    END LOOP;
    FOR place IN 1 .. cardinality(xs) LOOP
        link := merging[place];
        CONTINUE WHEN link = 0;
        x := xs[link];
        y := ys[link];
        roots[y] := x;
        weakest[x] := sorted_similarities[place];
        entry := heads[y];
        WHILE entry > 0 LOOP
            link := (entry + 1) / 2;
            last_place := due[link];
            IF last_place > 0 THEN
                neighbour := xs[link] + ys[link] - y;
                marks[neighbour] := place;
                due_of_neighbours[neighbour] := last_place;
                merging[last_place] := 0;
                due[link] := 0;
            END IF;
            entry := nexts[entry];
        END LOOP;
        entry := heads[x];
        WHILE entry > 0 LOOP
            link := (entry + 1) / 2;
            last_place := due[link];
            IF last_place > 0 THEN
                neighbour := xs[link] + ys[link] - x;
                merging[last_place] := 0;
                IF marks[neighbour] = place THEN
                    last_place := greatest(last_place, due_of_neighbours[neighbour]);
                    merging[last_place] := link;
                    due[link] := last_place;
                ELSE
                    due[link] := 0;
                END IF;
            END IF;
            entry := nexts[entry];
        END LOOP;
    END LOOP;
    roots := textsim._final_roots(roots);
END $$;

-- Documents are considered by rank, and kept if they have no link with a kept one; the others go to the most similar
-- kept one. A document that was judged the same as an earlier one follows it. No document goes to a cluster that has
-- one of its _apart().
CREATE OR REPLACE FUNCTION textsim._kept_linkage(
    lefts integer[], rights integer[], similarities double precision[], ranks integer[],
    apart_ends integer[] DEFAULT NULL, apart integer[] DEFAULT NULL, OUT roots integer[], OUT weakest double precision[])
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    link record;
    root integer;
    other integer;
BEGIN
    roots := array(SELECT generate_series(1, cardinality(ranks)));
    weakest := array_fill(1::double precision, ARRAY[cardinality(ranks)]);
    FOR link IN
        SELECT CASE WHEN ranks[l.x] < ranks[l.y] THEN l.x ELSE l.y END AS better,
            CASE WHEN ranks[l.x] < ranks[l.y] THEN l.y ELSE l.x END AS worse, l.similarity
        FROM unnest(lefts, rights, similarities) l (x, y, similarity)
        ORDER BY greatest(ranks[l.x], ranks[l.y]), l.similarity DESC, least(ranks[l.x], ranks[l.y])
    LOOP
        CONTINUE WHEN roots[link.worse] <> link.worse;
        root := roots[link.better];
        IF link.similarity < textsim._similarity_of_same() THEN
            CONTINUE WHEN root <> link.better;
            IF apart_ends IS NOT NULL THEN
                FOR place IN coalesce(apart_ends[link.worse - 1], 0) + 1 .. apart_ends[link.worse] LOOP
                    other := apart[place];
                    IF roots[other] = link.better THEN
                        root := NULL;
                        EXIT;
                    END IF;
                END LOOP;
                CONTINUE WHEN root IS NULL;
            END IF;
        END IF;
        roots[link.worse] := root;
        IF weakest[root] > link.similarity THEN
            weakest[root] := link.similarity;
        END IF;
    END LOOP;
END $$;

-- The clusters of links: the documents of clusters of two or more, each with its root.
CREATE OR REPLACE FUNCTION textsim._cluster(
    lefts integer[], rights integer[], similarities double precision[], ranks integer[], linkage text,
    apart_ends integer[] DEFAULT NULL, apart integer[] DEFAULT NULL)
RETURNS TABLE (document integer, root integer, weakest double precision)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    roots integer[];
    weakest_of_roots double precision[];
BEGIN
    IF linkage = 'kept' THEN
        SELECT l.* INTO roots, weakest_of_roots
        FROM textsim._kept_linkage(lefts, rights, similarities, ranks, apart_ends, apart) l;
    ELSIF linkage = 'complete' THEN
        SELECT l.* INTO roots, weakest_of_roots
        FROM textsim._complete_linkage(lefts, rights, similarities, cardinality(ranks)) l;
    ELSE
        SELECT l.* INTO roots, weakest_of_roots
        FROM textsim._single_linkage(lefts, rights, similarities, cardinality(ranks)) l;
    END IF;
    RETURN QUERY
        SELECT m.document, m.root, least(1, weakest_of_roots[m.root])
        FROM (
            SELECT d.document::integer, d.root, count(*) OVER (PARTITION BY d.root) AS size
            FROM unnest(roots) WITH ORDINALITY d (root, document)
        ) m
        WHERE m.size > 1;
END $$;

-- For each document the documents that were judged different from it or from its group: all of them in one array, and
-- the place of the last one of each document.
CREATE OR REPLACE FUNCTION textsim._apart(
    corpus text, keys text[], lefts integer[], rights integer[], similarities double precision[],
    OUT apart_ends integer[], OUT apart integer[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    -- A statement that is executed knows the sizes of its arrays, so its plan fits them.
    EXECUTE $query$
        WITH document AS MATERIALIZED (
            SELECT k.key, k.number::integer AS number FROM unnest($2) WITH ORDINALITY k (key, number)
        ), same AS MATERIALIZED (
            SELECT l.x, l.y FROM unnest($3, $4, $5) l (x, y, similarity)
            WHERE l.similarity = textsim._similarity_of_same()
        ), grouped AS MATERIALIZED (
            SELECT s.x, s.y FROM same s
            UNION ALL SELECT s.y, s.x FROM same s
            UNION ALL SELECT d.number, d.number FROM document d
        ), different AS MATERIALIZED (
            SELECT x.y AS x, y.y AS y
            FROM textsim._corpus($1) c
            CROSS JOIN LATERAL textsim._obeyed_judgements(textsim._origin(c), array_remove($2, NULL)) p
            JOIN document d ON d.key = p.a JOIN document e ON e.key = p.b
            JOIN grouped x ON x.x = d.number JOIN grouped y ON y.x = e.number
            WHERE p.verdict = 'different'
        ), both_ways AS MATERIALIZED (
            SELECT d.x, d.y FROM different d UNION SELECT d.y, d.x FROM different d
        )
        SELECT (
                SELECT array_agg(n.place::integer ORDER BY n.number)
                FROM (
                    SELECT d.number, sum(count(b.x)) OVER (ORDER BY d.number) AS place
                    FROM document d LEFT JOIN both_ways b ON b.x = d.number GROUP BY d.number
                ) n),
            (SELECT array_agg(b.y ORDER BY b.x, b.y) FROM both_ways b)
        $query$
    INTO apart_ends, apart USING corpus, keys, lefts, rights, similarities;
END $$;

-- The keys of the pairs of a query in order, and the links; NULL without pairs. Texts are in byte order, whatever their
-- collation. judged_corpus: whose judgements keep documents apart, if _pairs_query() has returned the query.
CREATE OR REPLACE FUNCTION textsim._read_pairs(
    query text, caller_path text, linkage text, judged_corpus text DEFAULT NULL, OUT keys text[], OUT lefts integer[],
    OUT rights integer[], OUT similarities double precision[], OUT apart_ends integer[], OUT apart integer[])
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    -- In a subquery nothing but a SELECT is possible. Without a third column, the similarity is 1.
    pair text := format(E'(SELECT q.*, 1::pg_catalog.float8 FROM (%s\n) q) r (a, b, similarity)',
        regexp_replace(query, '[;[:space:]]+$', ''));
    statement text := format('SELECT ARRAY[pg_catalog.pg_typeof(r.a), pg_catalog.pg_typeof(r.b)] '
        'FROM (VALUES (1)) one LEFT JOIN %s ON false', pair);
    types regtype[];
    columns text[];
    fault text;
BEGIN
    -- The names in the query are those of the caller, and all other names are qualified.
    PERFORM set_config('search_path', caller_path, true);
    EXECUTE statement INTO types;
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    columns := array(
        SELECT format(CASE WHEN t.typcollation <> 0 THEN 'r.%s::pg_catalog.text COLLATE pg_catalog."C"'
            ELSE 'r.%s' END, c.name)
        FROM unnest(types, '{a,b}'::text[]) WITH ORDINALITY c (type, name, place)
        JOIN pg_type t ON t.oid = c.type
        ORDER BY c.place);
    statement := format($query$
        WITH pair AS MATERIALIZED (
            SELECT pg_catalog.row_number() OVER () AS place, %1$s AS a, %2$s AS b,
                r.similarity::pg_catalog.float8 AS similarity
            FROM %3$s
        ), document AS MATERIALIZED (
            SELECT k.key, pg_catalog.row_number() OVER (ORDER BY k.key) AS number
            FROM (SELECT p.a FROM pair p UNION SELECT p.b FROM pair p) k (key)
        ), link AS MATERIALIZED (
            SELECT least(x.number, y.number)::pg_catalog.int4 AS x,
                greatest(x.number, y.number)::pg_catalog.int4 AS y, pg_catalog.max(p.similarity) AS similarity
            FROM pair p JOIN document x ON x.key = p.a JOIN document y ON y.key = p.b
            GROUP BY 1, 2
        )
        SELECT (SELECT pg_catalog.array_agg(d.key::pg_catalog.text ORDER BY d.number) FROM document d),
            pg_catalog.array_agg(l.x), pg_catalog.array_agg(l.y), pg_catalog.array_agg(l.similarity),
            (
                SELECT pg_catalog.format('pair %%s is (%%s, %%s)%%s: ', p.place,
                    pg_catalog.quote_nullable(p.a::pg_catalog.text), pg_catalog.quote_nullable(p.b::pg_catalog.text),
                    pg_catalog.format(' with similarity %%s', p.similarity))
                    || CASE WHEN p.a IS NULL OR p.b IS NULL THEN 'a key is NULL'
                        WHEN p.a = p.b THEN 'it has the same key twice'
                        ELSE 'expected a similarity from 0 to 1' END
                FROM pair p
                WHERE p.a IS NULL OR p.b IS NULL OR p.a = p.b
                    OR (p.similarity >= 0 AND p.similarity <= %4$s) IS NOT TRUE
                ORDER BY p.place LIMIT 1
            )
        FROM link l
        $query$, columns[1], columns[2], pair, CASE WHEN judged_corpus IS NULL THEN 1 ELSE textsim._similarity_of_same() END);
    PERFORM set_config('search_path', caller_path, true);
    EXECUTE statement INTO keys, lefts, rights, similarities, fault;
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION '%', fault USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF judged_corpus IS NOT NULL AND linkage = 'kept' AND keys IS NOT NULL THEN
        SELECT a.* INTO apart_ends, apart FROM textsim._apart(judged_corpus, keys, lefts, rights, similarities) a;
    END IF;
END $$;

-- The work of group_pairs(), with the search path of the caller.
CREATE OR REPLACE FUNCTION textsim._group_pairs(
    query text, linkage text, caller_path text, judged_corpus text DEFAULT NULL)
RETURNS TABLE (key text, cluster integer, kept text, weakest double precision)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 1000 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    pairs record;
BEGIN
    PERFORM textsim._check_given('the query', query IS NOT NULL),
        textsim._check_choice('linkage', linkage, 'single', 'complete', 'kept');
    pairs := textsim._read_pairs(query, caller_path, linkage, judged_corpus);
    IF pairs.keys IS NULL THEN
        RETURN;
    END IF;
    -- A statement that is executed knows the sizes of its arrays, so its plan fits them.
    RETURN QUERY EXECUTE $query$
        SELECT k.key, g.cluster::integer, r.key, g.weakest
        FROM (
            SELECT m.document, m.root, m.weakest,
                dense_rank() OVER (ORDER BY m.size DESC, m.lowest) AS cluster
            FROM (
                SELECT c.*, count(*) OVER w AS size, min(c.document) OVER w AS lowest
                FROM textsim._cluster(
                    $2, $3, $4, array(SELECT generate_series(1, cardinality($1))), $5, $6, $7) c
                WINDOW w AS (PARTITION BY c.root)
            ) m
        ) g
        JOIN unnest($1) WITH ORDINALITY k (key, number) ON k.number = g.document
        LEFT JOIN unnest($1) WITH ORDINALITY r (key, number) ON r.number = g.root AND $5 = 'kept'
        ORDER BY g.cluster, g.document
        $query$
    USING pairs.keys, pairs.lefts, pairs.rights, pairs.similarities, linkage, pairs.apart_ends, pairs.apart;
END $$;

-- A query for the pairs of a corpus that may be merged; with judgements, pairs judged different are left out, and those
-- judged the same are added.
CREATE OR REPLACE FUNCTION textsim._pairs_query(
    corpus text, threshold double precision, language text, scope text, judgements boolean)
RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
-- The threshold is written with all its digits, whatever the caller has set.
SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $$
BEGIN
    RETURN format('SELECT p.a, p.b, p.similarity FROM textsim._pairs(%L, %L, %L, %L, true) p',
        corpus, threshold, language, scope)
        || CASE WHEN judgements THEN format(
            ' WHERE NOT EXISTS (SELECT FROM textsim._different_pairs(%1$L) j WHERE j.a = p.a AND j.b = p.b)'
            ' UNION ALL SELECT s.a, s.b, textsim._similarity_of_same() '
            'FROM textsim._same_pairs(%1$L, %2$L, %3$L) s',
            corpus, language, textsim._part(scope))
        ELSE '' END;
END $$;

CREATE OR REPLACE FUNCTION textsim.group_pairs(query text, linkage text DEFAULT 'kept')
RETURNS TABLE (key text, cluster integer, kept text, weakest double precision)
LANGUAGE sql VOLATILE PARALLEL UNSAFE ROWS 1000
BEGIN ATOMIC
    SELECT g.key, g.cluster, g.kept, g.weakest
    FROM textsim._group_pairs($1, $2, current_setting('search_path')) g;
END;
COMMENT ON FUNCTION textsim.group_pairs(text, text)
    IS 'Returns the clusters of any pairs: one row for each key of a cluster. The query is a SELECT that returns '
    'two keys, and if you like a similarity from 0 to 1, by default 1; it runs with the rights of the caller. '
    'No text is compared. cluster numbers the clusters, the largest first; weakest is the similarity of the '
    'weakest link that holds the cluster together. linkage says how pairs make clusters. kept: one key is '
    'kept, and every other key of its cluster makes a pair with it; the keys are considered in their order, '
    'texts in byte order. complete: every two keys are a pair. single: the connected components of the pairs. '
    'kept is NULL with these two. The same pair may come twice, and then the higher similarity counts. '
    'Raises an error for a pair with NULL or with the same key twice.';

CREATE OR REPLACE FUNCTION textsim.clusters(
    corpus text, threshold double precision DEFAULT NULL, linkage text DEFAULT 'single', language text DEFAULT NULL,
    scope text DEFAULT NULL, judgements boolean DEFAULT false)
RETURNS TABLE (key text, cluster integer, kept text, weakest double precision)
LANGUAGE sql VOLATILE PARALLEL UNSAFE ROWS 1000
BEGIN ATOMIC
    SELECT g.key, g.cluster, g.kept, g.weakest
    FROM textsim._group_pairs(
        textsim._pairs_query($1, $2, $4, $5, $6), $3, 'pg_catalog, pg_temp', CASE WHEN $6 THEN $1 END) g;
END;
COMMENT ON FUNCTION textsim.clusters(text, double precision, text, text, text, boolean)
    IS 'Returns the clusters of similar documents of a corpus, as group_pairs() returns those of the pairs that '
    'pairs() finds. '
    'The default is linkage single. '
    'threshold, language and scope are as in pairs(). With judgements, the judgements of the corpus are obeyed: '
    'documents that a chain of pairs judged the same connects are in one cluster, and count as pairs of similarity '
    '1. A pair that was judged different is no pair, and with linkage kept or complete its documents are never in '
    'one cluster. judge() records judgements.';

CREATE OR REPLACE FUNCTION textsim.duplicates(
    corpus text, keep text DEFAULT 'first', threshold double precision DEFAULT NULL, linkage text DEFAULT 'kept',
    language text DEFAULT NULL, scope text DEFAULT NULL, judgements boolean DEFAULT false)
RETURNS TABLE (key text, kept text, similarity double precision)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 1000 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._lock_corpus(corpus);
    words text := 'coalesce(cardinality(d.word_ids), cardinality(string_to_array(d.normal_form, '' '')))';
    ordering text := CASE keep WHEN 'first' THEN '1' WHEN 'last' THEN '-k.number'
        WHEN 'longest' THEN '-' || words WHEN 'shortest' THEN words END;
    pairs record;
    ranks integer[];
BEGIN
    PERFORM textsim._check_choice('keep', keep, 'first', 'last', 'longest', 'shortest'),
        textsim._check_choice('linkage', linkage, 'single', 'complete', 'kept');
    pairs := textsim._read_pairs(
        textsim._pairs_query(corpus, threshold, language, scope, judgements), 'pg_catalog, pg_temp', linkage,
        CASE WHEN judgements THEN corpus END);
    IF pairs.keys IS NULL THEN
        RETURN;
    END IF;
    EXECUTE format($query$
        SELECT array_agg(o.rank::integer ORDER BY o.number)
        FROM (
            SELECT k.number, row_number() OVER (ORDER BY %s, k.number) AS rank
            FROM unnest($1) WITH ORDINALITY k (key, number) LEFT JOIN textsim.%I d ON d.key = k.key
        ) o
        $query$, ordering, 'document_' || c.id)
    INTO ranks USING pairs.keys;
    RETURN QUERY EXECUTE format($query$
        SELECT k.key, r.key, coalesce(nullif(l.similarity, textsim._similarity_of_same()), (
            SELECT textsim._jaccard($6, textsim._stored_form(($6).id, d.word_ids, d.normal_form),
                textsim._stored_form(($6).id, e.word_ids, e.normal_form))
            FROM textsim.%1$I d JOIN textsim.%1$I e ON e.key = r.key WHERE d.key = k.key))
        FROM (
            SELECT m.document, CASE WHEN $5 = 'kept' THEN m.root
                ELSE first_value(m.document) OVER (PARTITION BY m.root ORDER BY ($7)[m.document]) END AS kept
            FROM textsim._cluster($2, $3, $4, $7, $5, $8, $9) m
        ) g
        JOIN unnest($1) WITH ORDINALITY k (key, number) ON k.number = g.document
        JOIN unnest($1) WITH ORDINALITY r (key, number) ON r.number = g.kept
        LEFT JOIN unnest($2, $3, $4) l (x, y, similarity)
            ON l.x = least(g.document, g.kept) AND l.y = greatest(g.document, g.kept)
        WHERE g.document <> g.kept
        $query$, 'document_' || c.id)
    USING pairs.keys, pairs.lefts, pairs.rights, pairs.similarities, linkage, c, ranks, pairs.apart_ends, pairs.apart;
END $$;
COMMENT ON FUNCTION textsim.duplicates(text, text, double precision, text, text, text, boolean)
    IS 'Returns the documents to remove so that each cluster keeps one document: key, the key that is kept in '
    'its place, and their exact similarity. The pairs are those of pairs(). Nothing is removed. keep says which document of a cluster is '
    'kept: first or last in the byte order of the keys, or longest or shortest, by the number of words; '
    'ties go to the first key. With linkage kept, every document to remove makes a pair with the kept '
    'document; with the other linkages of group_pairs() their similarity may be below the threshold. '
    'threshold, language and scope are as in pairs(). With judgements, the judgements of the corpus are obeyed, as in '
    'clusters(); documents that were judged the same may have any similarity.';
