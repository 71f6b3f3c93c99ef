-- The table of memories, the corpus that knows which texts a tenant has, and the function that keeps or counts.
CREATE TABLE memory (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL,
    body text NOT NULL,
    seen integer NOT NULL DEFAULT 1,
    last_seen timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now()
);
SELECT textsim.create_corpus('memory', shingle => 'char:5', threshold => 0.6, recall => 1,
    is_unique => true, guards => '{numbers,negations}', scoped => true, keep_for => '30 days');

CREATE FUNCTION remember(tenant text, body text, force boolean DEFAULT false) RETURNS memory
LANGUAGE plpgsql AS $$
DECLARE
    kept memory;
    detail text;
    standing bigint;  -- the memory that matches the text, as soon as the corpus has named it
BEGIN
    FOR attempt IN 1..10 LOOP
        BEGIN
            UPDATE memory SET seen = seen + 1, last_seen = now() WHERE id = standing RETURNING * INTO kept;
            IF NOT FOUND THEN
                INSERT INTO memory (tenant, body) VALUES (tenant, body) RETURNING * INTO kept;
            END IF;
            -- A memory that is added again counts for another 30 days.
            PERFORM textsim.add('memory', kept.id::text, kept.body, scope => tenant, force => force);
            RETURN kept;
        EXCEPTION WHEN unique_violation THEN
            -- The block is undone, and its locks are released.
            GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
            standing := substring(detail FROM '^Key \((\d+)\) has similarity');
            IF standing IS NULL THEN
                RAISE;  -- another constraint
            END IF;
        END;
    END LOOP;
    RAISE EXCEPTION 'document % of corpus "memory" has no row in the table', standing;
END $$;
