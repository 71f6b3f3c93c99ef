-- How a step of sql/upgrade begins. This file runs before each step, too, because an older schema may lack the function.

-- Lock textsim.corpus, the views, the other tables that all corpora share, and those of each corpus with these names,
-- until the transaction ends. The first of several steps in one transaction locks for all. The files of sql/schema
-- record the tables anew.
-- Transactions read textsim.corpus first, but some read documents or a view before. So the wait for the other tables is
-- shorter than deadlock_timeout, and no other transaction becomes the victim of a deadlock. Between two attempts nothing
-- is locked, because others wait behind a lock that waits.
CREATE OR REPLACE FUNCTION textsim._begin_step(VARIADIC tables text[]) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    lock_timeout constant text := current_setting('lock_timeout');
    ends_at constant timestamptz := clock_timestamp() + nullif(lock_timeout, '0')::interval;
    statement text;
BEGIN
    LOOP
        BEGIN
            PERFORM set_config('lock_timeout', '2s', true);
            LOCK TABLE textsim.corpus;
            PERFORM set_config('lock_timeout', '300ms', true);
            FOR statement IN
                -- LOCK TABLE would lock the tables of a view, too; RESET changes nothing.
                SELECT format(CASE c.relkind WHEN 'v' THEN 'ALTER VIEW %s RESET (security_barrier)'
                    ELSE 'LOCK TABLE %s' END, c.oid::regclass)
                FROM pg_class c
                WHERE c.relnamespace = 'textsim'::regnamespace AND (c.relkind = 'v'
                    OR c.relkind = 'r' AND coalesce(substring(c.relname FROM '^(.*)_[0-9]+$') = ANY (tables), true))
            LOOP
                EXECUTE statement;
            END LOOP;
            PERFORM set_config('lock_timeout', lock_timeout, true);
            DELETE FROM textsim.installed;
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            IF clock_timestamp() > ends_at THEN
                RAISE;
            END IF;
            PERFORM pg_sleep(1);
        END;
    END LOOP;
END $$;
