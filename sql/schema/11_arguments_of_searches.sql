-- Checks that many functions share: of the corpus, the language, the scope and the threshold, and that no transaction
-- is open.

-- A number and a noun, for a message.
CREATE OR REPLACE FUNCTION textsim._counted(number bigint, noun text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN number || ' ' || noun || CASE number WHEN 1 THEN '' ELSE 's' END;

-- The recipe that these functions compute.
CREATE OR REPLACE FUNCTION textsim._recipe() RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 3;

-- The version of the lists of guards in 24_guards.sql, by which these functions compute guards. A change of the lists
-- raises it. The guards of stored documents are those of the lists of their time, and equal guards decide merges.
CREATE OR REPLACE FUNCTION textsim._guard_lists() RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 3;

-- The version of the lists by which the guards of a corpus were computed; the first one did not record it. NULL if the
-- corpus has no such guards: then older clients go on when a later version changes the lists.
CREATE OR REPLACE FUNCTION textsim._guard_lists_of(c textsim.corpus) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN NOT c.guards <@ '{words}' THEN coalesce((c.created_with ->> 'guard_lists')::integer, 1) END;

-- The part of a corpus that these functions compute in another way than it was built; NULL if there is none.
CREATE OR REPLACE FUNCTION textsim._other_build(c textsim.corpus) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE
    WHEN c.recipe <> textsim._recipe() THEN format(
        'was built by recipe %s; these functions compute recipe %s', c.recipe, textsim._recipe())
    WHEN textsim._guard_lists_of(c) <> textsim._guard_lists() THEN format(
        'has guards by version %s of the lists of guards; these functions have version %s',
        textsim._guard_lists_of(c), textsim._guard_lists()) END;

-- The corpus with a name; an error if the name is NULL or no corpus has it.
CREATE OR REPLACE FUNCTION textsim._corpus(name text) RETURNS textsim.corpus
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus;
BEGIN
    PERFORM textsim._check_given('the name of the corpus', name IS NOT NULL);
    SELECT * INTO c FROM textsim.corpus k WHERE k.name = _corpus.name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'corpus "%" does not exist', name
            USING ERRCODE = 'undefined_object', HINT = 'SELECT name FROM textsim.corpus lists the corpora.';
    END IF;
    IF textsim._other_build(c) IS NOT NULL THEN
        RAISE EXCEPTION 'corpus "%" %', name, textsim._other_build(c) USING ERRCODE = 'feature_not_supported',
            HINT = CASE WHEN c.recipe > textsim._recipe() OR textsim._guard_lists_of(c) > textsim._guard_lists()
                THEN 'Use a newer version of textsim-db.' ELSE 'Run: textsim rebuild ' || quote_ident(name) END;
    END IF;
    -- The snapshot of a transaction that began before a rebuild still shows the old corpus.
    IF to_regclass(format('textsim.document_%s', c.id)) IS NULL THEN
        RAISE EXCEPTION 'corpus "%" was rebuilt or dropped after this transaction began', name
            USING ERRCODE = 'serialization_failure', HINT = 'Repeat the transaction.';
    END IF;
    RETURN c;
END $$;

-- The corpus with a name, locked against a rebuild until the end of the transaction.
-- VOLATILE, so that each repetition has a new snapshot, which shows the new corpus of a rebuild.
CREATE OR REPLACE FUNCTION textsim._lock_corpus(name text) RETURNS textsim.corpus
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus;
BEGIN
    LOOP
        BEGIN
            c := textsim._corpus(name);
            EXECUTE format('LOCK TABLE textsim.%I, textsim.%I IN ACCESS SHARE MODE',
                'band_' || c.id, 'document_' || c.id);
            RETURN c;
        EXCEPTION WHEN undefined_table OR serialization_failure THEN
            -- It can be repeated if a rebuild has replaced the corpus. At the other levels a repeated statement has the
            -- same snapshot, which never shows the new corpus.
            IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') OR EXISTS (
                SELECT FROM textsim.corpus o
                WHERE o.name = _lock_corpus.name AND (
                    o.id = c.id
                    OR to_regclass('textsim.document_' || o.id) IS NULL
                    OR to_regclass('textsim.band_' || o.id) IS NULL))
            THEN
                RAISE;
            END IF;
        END;
    END LOOP;
END $$;

-- The language; an error if it is not a code, or if the corpus does not identify languages.
CREATE OR REPLACE FUNCTION textsim._check_language(c textsim.corpus, language text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF c.language IS NULL THEN
        RAISE EXCEPTION 'corpus "%" does not identify languages', c.name
            USING ERRCODE = 'invalid_parameter_value',
                HINT = 'Leave the language out, or create a corpus with language "auto".';
    END IF;
    IF language !~ '^[a-z]{2,3}$' THEN
        RAISE EXCEPTION 'language is "%"; expected a code of ISO 639, such as "en"', language
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN language;
END $$;

-- STABLE as format() is, so that the planner inlines it.
CREATE OR REPLACE FUNCTION textsim._scope_fault(c textsim.corpus, scope text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE
    WHEN c.scoped AND scope IS NULL THEN 'the scope is NULL'
    WHEN NOT c.scoped AND scope IS NOT NULL THEN format('corpus "%s" is not scoped', c.name)
    WHEN octet_length(scope) > 200 THEN
        format('the scope is %s bytes long; at most 200 are possible', octet_length(scope))
END;

-- The part of a document or a search; an error if the scope is missing in a scoped corpus, or given for another.
CREATE OR REPLACE FUNCTION textsim._part_of(c textsim.corpus, scope text) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    fault text := textsim._scope_fault(c, scope);
BEGIN
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION '%', CASE WHEN scope IS NULL
            THEN format('corpus "%s" is scoped, and no scope is given', c.name) ELSE fault END
            USING ERRCODE = 'invalid_parameter_value', HINT = CASE
                WHEN scope IS NULL THEN 'Name the scope: scope => ''...''.'
                WHEN NOT c.scoped THEN 'Leave the scope out, or create a corpus with scoped => true.'
                ELSE 'Name a shorter scope, such as a hash.' END;
    END IF;
    RETURN textsim._part(scope);
END $$;

-- A share, and for the nearest real to a number of up to six digits this number.
-- PostgreSQL makes 0.800000011920929 of 0.8::real, above the similarity of four shingles out of five. A real has six
-- decimal digits. No set of shingles is so large that another share has this value.
CREATE OR REPLACE FUNCTION textsim._decimal_of(share double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE
    WHEN share < 0.000001 OR share > 1 THEN share
    WHEN share::real::double precision = share AND share::real::numeric::real = share::real
        THEN share::real::numeric::double precision
    ELSE share END;

-- An error unless the threshold is above 0, at most 1, and in an exact corpus, if there is one, not lower than it has.
CREATE OR REPLACE FUNCTION textsim._check_threshold(c textsim.corpus, threshold double precision)
RETURNS double precision
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    threshold := textsim._decimal_of(threshold);
    IF NOT (threshold > 0 AND threshold <= 1) THEN
        RAISE EXCEPTION 'threshold is %; expected above 0, at most 1', threshold
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF c.bands IS NULL AND threshold < c.threshold THEN
        RAISE EXCEPTION 'threshold is %; the exact corpus "%" finds every pair from % on, but not below',
            threshold, c.name, c.threshold
            USING ERRCODE = 'invalid_parameter_value',
                HINT = 'textsim rebuild lowers the threshold of a corpus.';
    END IF;
    RETURN threshold;
END $$;

CREATE OR REPLACE FUNCTION textsim._check_search(c textsim.corpus, threshold double precision, max_results integer)
RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM textsim._check_threshold(c, threshold);
    IF max_results < 1 THEN
        RAISE EXCEPTION 'max_results is %; expected 1 or more, or NULL for all', max_results
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;

-- Raise an error that names an argument, unless it is given.
CREATE OR REPLACE FUNCTION textsim._check_given(name text, is_given boolean) RETURNS void
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT is_given THEN
        RAISE EXCEPTION '% is NULL', name USING ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION textsim._check_choice(name text, value text, VARIADIC choices text[]) RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (value = ANY (choices)) IS NOT TRUE THEN
        RAISE EXCEPTION '% is %; expected % or %', name, quote_nullable(value),
            array_to_string(choices[:cardinality(choices) - 1], ', '), choices[cardinality(choices)]
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;

-- A block with EXCEPTION can neither commit nor roll back, and the server has a message for each of the two. In a
-- transaction block the server has one message for both, whatever its language is. A procedure with a SET clause could
-- never commit.
CREATE OR REPLACE PROCEDURE textsim._check_no_transaction(name text)
LANGUAGE plpgsql AS $$
DECLARE
    of_commit pg_catalog.text;
    of_rollback pg_catalog.text;
BEGIN
    BEGIN
        COMMIT;
    EXCEPTION WHEN invalid_transaction_termination THEN
        of_commit := SQLERRM;
    END;
    BEGIN
        ROLLBACK;
    EXCEPTION WHEN invalid_transaction_termination THEN
        of_rollback := SQLERRM;
    END;
    IF pg_catalog.texteq(of_commit, of_rollback) THEN
        RAISE EXCEPTION '% commits after each step, so it cannot run in a transaction block or a function', name
            USING ERRCODE = 'invalid_transaction_termination',
                HINT = 'End the transaction, and call it alone. If the client begins transactions by itself, '
                    'switch on its autocommit.';
    END IF;
END $$;
