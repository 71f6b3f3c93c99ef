-- The key of a row of an attached table: the text of its key column, or the texts of several key columns, joined by a
-- slash. Inside of a text ~ becomes ~0 and / becomes ~1, as in a JSON pointer (RFC 6901), so two rows never have one key.
-- Only _text_of turns a value into a text, under fixed settings. Money is refused, because its text depends on another
-- setting, and the values of an enum are part of the shape (65), because they can be renamed. No other setting of a session
-- matters: no body in PL/pgSQL has a backslash outside of E'', and what names objects of the schema sets
-- quote_all_identifiers = off.

CREATE OR REPLACE FUNCTION textsim._base_type(type oid) RETURNS oid
LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    WITH RECURSIVE based (oid, base) AS (
        SELECT t.oid, t.typbasetype FROM pg_type t WHERE t.oid = type
        UNION ALL
        SELECT t.oid, t.typbasetype FROM based b JOIN pg_type t ON t.oid = b.base
    )
    SELECT b.oid FROM based b WHERE b.base = 0;
END;

-- A value as a text that no setting of the session changes; trigger functions and row filters take their settings from
-- here. concat() calls the output function of the type; a cast could be a function of the type's owner.
CREATE OR REPLACE FUNCTION textsim._text_of(value anyelement) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET timezone = 'UTC'
SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET extra_float_digits = 1 SET bytea_output = 'hex'
SET xmloption = 'content' SET jit = off AS $$
BEGIN
    RETURN concat(value);
END $$;

-- The settings of textsim._text_of as clauses of another function, without search_path.
CREATE OR REPLACE FUNCTION textsim._text_settings() RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT string_agg(format('SET %s = %L', split_part(s, '=', 1), split_part(s, '=', 2)), ' ')
    FROM pg_proc p CROSS JOIN unnest(p.proconfig) s
    WHERE p.oid = to_regprocedure('textsim._text_of(anyelement)') AND s NOT LIKE 'search_path=%';
END;

-- An expression: the text of a column of a row of an attached table; NULL if the column is NULL.
-- A function with settings takes 6 microseconds, so it writes only the types whose text depends on a setting. The
-- padding of char(n) is no part of a value: PostgreSQL ignores it when it compares.
CREATE OR REPLACE FUNCTION textsim._text_expression(relation oid, version text, column_name name) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN (
    SELECT format(CASE
        WHEN b.type = ANY ('{text,varchar,smallint,integer,bigint,numeric,boolean,uuid}'::regtype[])
            THEN 'CASE WHEN %1$s.%2$I IS NOT NULL THEN pg_catalog.concat(%1$s.%2$I) END'
        WHEN b.type = 'bpchar'::regtype
            THEN 'CASE WHEN %1$s.%2$I IS NOT NULL THEN pg_catalog.rtrim(pg_catalog.concat(%1$s.%2$I), '' '') END'
        ELSE 'textsim._text_of(%1$s.%2$I)' END, version, column_name)
    FROM (SELECT textsim._base_type((
        SELECT a.atttypid FROM pg_attribute a
        WHERE a.attrelid = relation AND a.attname = column_name AND NOT a.attisdropped))) b (type));

-- A value as it stands in a key of several values: without a slash.
CREATE OR REPLACE FUNCTION textsim._escape_part(part text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN replace(replace(part COLLATE "C", '~', '~0'), '/', '~1');

-- An expression: the key of a row of an attached table.
-- concat_ws() calls the output functions of the types. With one column there is no slash, and nothing to escape.
CREATE OR REPLACE FUNCTION textsim._key_of(source textsim.source, version text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
    SELECT format('(pg_catalog.concat_ws(''/'', %s) COLLATE pg_catalog."C")', string_agg(format(
        CASE
            WHEN k.type = ANY ('{date,timestamp,timestamptz}'::regtype[]) THEN 'textsim._text_of(%s.%I)'
            WHEN k.type = ANY ('{text,varchar}'::regtype[]) AND cardinality(source.key_columns) > 1
                THEN 'textsim._escape_part(%s.%I)'
            ELSE '%s.%I'
        END, version, k.name), ', ' ORDER BY k.place))
    FROM unnest(source.key_columns, source.key_types) WITH ORDINALITY k (name, type, place));

-- A unique index on exactly these columns of a table, in any order; NULL if there is none.
CREATE OR REPLACE FUNCTION textsim._key_index(relation oid, key_columns name[]) RETURNS oid
LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT i.indexrelid FROM pg_index i
    WHERE i.indrelid = relation AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
        AND array(SELECT k FROM unnest((i.indkey::int2[])[:i.indnkeyatts - 1]) k ORDER BY k) = array(
            SELECT a.attnum FROM pg_attribute a
            WHERE a.attrelid = relation AND a.attname = ANY (key_columns) AND a.attnum > 0 AND NOT a.attisdropped
            ORDER BY a.attnum)
    ORDER BY i.indimmediate DESC, i.indexrelid LIMIT 1;
END;

-- The key columns of a table as expressions, with the values that a key has for them, in the order of an index.
-- The order of the index, so that the rows can be read in pages. Only texts have escaped characters.
CREATE OR REPLACE FUNCTION textsim._key_parts(source textsim.source, version text, key text)
RETURNS TABLE (part text, value text, place bigint)
LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 2
BEGIN ATOMIC
    SELECT format('%s.%I::%s', version, k.name, format_type(k.type, NULL)),
        format('%s::%s', CASE WHEN cardinality(source.key_columns) = 1 THEN key
            ELSE format(
                CASE WHEN k.type = ANY ('{text,varchar}'::regtype[]) THEN 'textsim.key_part(%s, %s)'
                    ELSE 'pg_catalog.split_part(%s, ''/'', %s)' END, key, k.place) END, format_type(k.type, NULL)),
        row_number() OVER (ORDER BY array_position(i.indkey::int2[], a.attnum), k.place)
    FROM unnest(source.key_columns, source.key_types) WITH ORDINALITY k (name, type, place)
    LEFT JOIN pg_attribute a ON a.attrelid = source.relation AND a.attname = k.name AND NOT a.attisdropped
    LEFT JOIN pg_index i ON i.indexrelid = textsim._key_index(source.relation, source.key_columns);
END;

-- A condition: a row of an attached table has this key; an index of the table serves it. Clients send it, and public may
-- have an operator for two varchar, which pg_catalog has not.
CREATE OR REPLACE FUNCTION textsim._has_key(source textsim.source, version text, key text) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN (
    SELECT string_agg(format('%s OPERATOR(pg_catalog.=) %s', p.part, p.value), ' AND ' ORDER BY p.place)
    FROM textsim._key_parts(source, version, key) p);

-- A list for ORDER BY: the key columns of an attached table, in the order of an index.
CREATE OR REPLACE FUNCTION textsim._key_order(source textsim.source, version text) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN (SELECT string_agg(p.part, ', ' ORDER BY p.place) FROM textsim._key_parts(source, version, 'q.key') p);

-- A condition: a row of an attached table comes after this key, in the order of _key_order.
CREATE OR REPLACE FUNCTION textsim._is_after(source textsim.source, version text, key text) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN (
    SELECT format('(%s) OPERATOR(pg_catalog.>) (%s)',
        string_agg(p.part, ', ' ORDER BY p.place), string_agg(p.value, ', ' ORDER BY p.place))
    FROM textsim._key_parts(source, version, key) p);

CREATE OR REPLACE FUNCTION textsim.join_key(VARIADIC parts text[]) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT CASE WHEN cardinality(parts) > 0 AND array_position(parts, NULL) IS NULL THEN (
        SELECT string_agg(CASE WHEN cardinality(parts) = 1 THEN p.part
            ELSE textsim._escape_part(p.part) END, '/' ORDER BY p.place)
        FROM unnest(parts) WITH ORDINALITY p (part, place)) END;
END;
COMMENT ON FUNCTION textsim.join_key(text[])
    IS 'Returns the key of a row whose key columns have these values: they are joined by a slash, and inside of a '
    'value ~ becomes ~0 and / becomes ~1. A single value is returned as it is. Write a date as 2026-11-25, and a '
    'timestamptz as 2026-11-25 09:30:00+00, in UTC, as in the keys of attached tables. Returns NULL if a value is NULL '
    'or there is none.';

CREATE OR REPLACE FUNCTION textsim.key_part(key text, number integer) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN replace(replace(split_part(key, '/', number), '~1', '/'), '~0', '~');
COMMENT ON FUNCTION textsim.key_part(text, integer)
    IS 'Returns a value from the key of a table with several key columns; number is the place of the column in '
    'key_columns, from 1 on. Cast it to the type of the column, and PostgreSQL looks the row up in the index of the '
    'table: day = textsim.key_part(key, 1)::date.';
