-- Unique corpora: no document may match another document of the corpus.
--
-- Two similar documents share a bucket. So a writer locks its buckets until the end of its transaction, looks for twins
-- in a later statement, and only then writes. If the transaction is READ COMMITTED, the later statement sees all that
-- earlier holders of these locks have committed. These rules hold the promise:
--
-- - The look-up is a statement of its own in a VOLATILE function, so its snapshot is newer than the locks.
-- - All locks of a call are taken in one order. Buckets are locked before documents, and before any table is read: a
--   rebuild holds the lock of the corpus while it waits for tables.
-- - If another transaction is changing or removing a twin, FOR SHARE waits for it, and the look-up is repeated.
-- - The key of a lock has the corpus's first id (origin), because a rebuilt corpus has another id.
-- - A lock ends with its transaction or savepoint, and so does the setting that counts the locks.
-- - Only _is_match and _merges decide, in 15. Judgements are read after the locks, too.
-- - twins_of counts its locks twice, because the INSERT after it takes them again. Otherwise two sessions could both
--   hold the lock of the corpus shared, and want it exclusively.

-- How many buckets a transaction locks before it locks whole corpora.
CREATE OR REPLACE FUNCTION textsim._max_bucket_locks() RETURNS integer
LANGUAGE sql STABLE PARALLEL SAFE
RETURN coalesce(nullif(current_setting('textsim.max_bucket_locks', true), ''), '256')::integer;

-- Raise an error unless the current role may write to a corpus; or of_session, the role of the session: in a function
-- with the rights of the schema's owner, the current role is the owner.
CREATE OR REPLACE FUNCTION textsim._check_writer(corpus_id integer, of_session boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    documents oid := to_regclass('textsim.document_' || corpus_id);
BEGIN
    IF NOT (CASE WHEN of_session THEN EXISTS (
            SELECT FROM pg_roles r
            WHERE pg_has_role(session_user, r.oid, 'MEMBER') AND has_table_privilege(r.oid, documents, 'INSERT'))
        ELSE has_table_privilege(documents, 'INSERT') END)
    THEN
        RAISE EXCEPTION 'this role may not write to corpus "%"',
            (SELECT c.name FROM textsim.corpus c WHERE c.id = corpus_id)
            USING ERRCODE = 'insufficient_privilege',
                HINT = 'Let the owner of the schema call textsim.grant_writer for this role.';
    END IF;
END $$;

-- Lock a unique corpus until the end of the transaction, shared by writers that lock buckets; returns its first id.
-- The corpus is locked by its first id, because a rebuilt corpus has another id, and its writers must exclude
-- the writers of the old corpus.
CREATE OR REPLACE FUNCTION textsim._lock_unique(corpus_id integer, is_exclusive boolean) RETURNS integer
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    first_id integer := (
        SELECT textsim._origin(k) FROM textsim.corpus k WHERE k.id = _lock_unique.corpus_id);
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION 'a unique corpus cannot be written at the isolation level %',
            current_setting('transaction_isolation')
            USING ERRCODE = 'feature_not_supported',
                DETAIL = 'The snapshot of the transaction may be older than its locks, and hide twins.',
                HINT = 'Begin the transaction with: BEGIN ISOLATION LEVEL READ COMMITTED';
    END IF;
    -- A role that may only search must not keep writers out.
    PERFORM textsim._check_writer(corpus_id);
    IF is_exclusive THEN
        PERFORM pg_advisory_xact_lock(hashtext('textsim-db unique corpus'), first_id);
    ELSE
        PERFORM pg_advisory_xact_lock_shared(hashtext('textsim-db unique corpus'), first_id);
    END IF;
    -- A later statement: a rebuild may have replaced the corpus while we waited. It drops the old one afterwards.
    IF corpus_id IS DISTINCT FROM (SELECT max(k.id) FROM textsim.corpus k WHERE textsim._origin(k) = first_id) THEN
        RAISE EXCEPTION 'the corpus was rebuilt while this transaction wrote to it; repeat the transaction'
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    RETURN first_id;
END $$;

-- Lock parts of a unique corpus, given by their bits in order, against all other writers.
-- The server's table of locks has room for some 12,800. If it is full, statements of other sessions fail too.
-- So a transaction counts its bucket locks, and from a number on it locks whole parts, or the corpus if it has
-- none. The count and the locked parts stand in settings, which a rollback to a savepoint restores, as it
-- releases the locks. A wrong count can only make it lock too much. A part is locked for at least one bucket, so
-- the locks of parts need no count.
--
-- Every transaction locks the corpus first, then parts and then buckets, each in order. So two that lock once
-- cannot deadlock. The exclusive or gives each corpus its own class, so that class and bucket are one key of 64
-- bits that corpora never share.
CREATE OR REPLACE FUNCTION textsim._lock_parts(corpus_id integer, bits integer[]) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    -- The parts that this transaction has locked. Locking them again costs nothing.
    locked integer[] := coalesce(nullif(current_setting('textsim.locked_parts', true), ''), '{}');
    first_id integer;
BEGIN
    locked := array(SELECT unnest(locked) UNION SELECT unnest(bits));
    IF cardinality(locked) > textsim._max_bucket_locks() THEN
        PERFORM textsim._lock_unique(corpus_id, true);
        RETURN;
    END IF;
    first_id := textsim._lock_unique(corpus_id, false);
    PERFORM pg_advisory_xact_lock(hashtext('textsim-db parts') # first_id, b) FROM unnest(bits) b;
    PERFORM set_config('textsim.locked_parts', locked::text, true);
END $$;

-- Lock buckets until the end of the transaction; or their parts, or the corpus, past textsim.max_bucket_locks locks.
-- Look for twins in a later statement. times: how often the transaction will lock these buckets in all.
CREATE OR REPLACE FUNCTION textsim._lock_buckets(
    corpus_id integer, buckets integer[], parts bigint[], times integer DEFAULT 1)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    held integer := coalesce(nullif(current_setting('textsim.bucket_locks', true), '')::integer, 0);
    locks integer := held + cardinality(buckets);
    first_id integer;
    bits integer[] := array(
        SELECT DISTINCT textsim._part_bits(p) AS bits FROM unnest(parts) p WHERE p IS NOT NULL ORDER BY bits);
    locked integer[] := coalesce(nullif(current_setting('textsim.locked_parts', true), ''), '{}');
BEGIN
    IF held + times * cardinality(buckets) <= textsim._max_bucket_locks() AND (bits = '{}' OR NOT bits <@ locked) THEN
        first_id := textsim._lock_unique(corpus_id, false);
        PERFORM pg_advisory_xact_lock_shared(hashtext('textsim-db parts') # first_id, p)
        FROM unnest(bits) p WHERE buckets <> '{}';
        PERFORM pg_advisory_xact_lock(hashtext('textsim-db buckets') # first_id, o.bucket)
        FROM (SELECT DISTINCT b AS bucket FROM unnest(buckets) b ORDER BY b OFFSET 0) o;
        PERFORM set_config('textsim.bucket_locks', locks::text, true);
        RETURN;
    END IF;
    IF bits = '{}' THEN
        PERFORM textsim._lock_unique(corpus_id, true);
        RETURN;
    END IF;
    PERFORM textsim._lock_parts(corpus_id, bits);
END $$;

-- The buckets that keep other writers from storing a twin: in an exact corpus the first ones are enough, because similar
-- documents share one of them. Documents with different guards are no twins, and so have different locks.
CREATE OR REPLACE FUNCTION textsim._buckets_to_lock(
    c textsim.corpus, buckets integer[], shingle_count integer, guard bigint)
RETURNS integer[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN textsim._in_part(CASE WHEN c.bands IS NULL
    THEN buckets[1:shingle_count + 1 - textsim._overlap(shingle_count, c.threshold)] ELSE buckets END, guard);

-- The similarity from which on a twin keeps a document out in one call: 0, any; 1, only one with the same shingles;
-- infinity, none. It cannot make a twin of a pair that the corpus takes for none.
CREATE OR REPLACE FUNCTION textsim._raised(unique_from double precision, force boolean) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    unique_from := textsim._decimal_of(unique_from);
    IF NOT (unique_from > 0 AND unique_from <= 1 OR unique_from = 'Infinity') THEN
        RAISE EXCEPTION 'unique_from is %; expected above 0, at most 1, or Infinity', unique_from
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN greatest(unique_from, CASE WHEN force THEN 1 ELSE 0 END);
END $$;

-- The twins of a text that is sketched already, best first.
CREATE OR REPLACE FUNCTION textsim._twins_of_sketch(
    c textsim.corpus, document_key text, form text, sketched textsim._sketched)
RETURNS TABLE (key text, similarity double precision)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN QUERY
        SELECT m.key, m.similarity
        FROM textsim._search(
            c, sketched.buckets, sketched.shingle_values, form, NULL, sketched.shingle_count, document_key,
            c.threshold, NULL, NULL, sketched.part, sketched.guard, with_rejected => true) m
        WHERE textsim._merges(
            c, document_key, form, m.key, NULL, m.similarity, sketched.guard, m.guard);
END $$;

-- The documents that keep a text out, without the document that has its key, best first.
CREATE OR REPLACE FUNCTION textsim._twins(
    c textsim.corpus, document_key text, body text, scope text, unique_from double precision DEFAULT 0)
RETURNS TABLE (key text, similarity double precision)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    form text := textsim._form(c, body);
BEGIN
    RETURN QUERY
        SELECT t.* FROM textsim._twins_of_sketch(
            c, document_key, form, textsim._sketched(c, form, textsim._part(scope))) t
        WHERE textsim._is_match(t.similarity, unique_from);
END $$;

-- The keys of the twins of a text whose buckets are locked, and the highest similarity; their writers have ended.
CREATE OR REPLACE FUNCTION textsim._awaited_twins(
    c textsim.corpus, document_key text, form text, sketched textsim._sketched, OUT twins text[],
    OUT best double precision)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
SET jit = off AS $$
DECLARE
    waited_for text[];
BEGIN
    -- A later statement than the locks: its snapshot has what their last holders have written.
    LOOP
        SELECT coalesce(array_agg(t.key), '{}'), max(t.similarity) INTO twins, best
        FROM textsim._twins_of_sketch(c, document_key, form, sketched) t;
        IF twins = '{}' OR twins <@ waited_for THEN
            RETURN;
        END IF;
        -- Another transaction may be removing or changing a twin. When it has ended, look again.
        EXECUTE format('SELECT FROM textsim.%I d WHERE d.key = ANY ($1) ORDER BY d.key FOR SHARE', 'document_' || c.id)
        USING twins;
        waited_for := twins;
    END LOOP;
END $$;

-- Raise an error if a document of a unique corpus belongs to an attached table.
CREATE OR REPLACE FUNCTION textsim._refuse_attached(corpus_id integer, keys text[]) RETURNS void
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    attached record;
BEGIN
    -- Without its document, a row would no longer keep its twins out.
    EXECUTE format(
        'SELECT d.key, s.relation, c.name '
        'FROM textsim.%I d JOIN textsim.source s ON s.id = d.source_id JOIN textsim.corpus c ON c.id = $1 '
        'WHERE d.key = ANY ($2) AND s.active ORDER BY d.key LIMIT 1', 'document_' || corpus_id)
    INTO attached USING corpus_id, keys;
    IF attached.key IS NOT NULL THEN
        RAISE EXCEPTION 'document "%" of unique corpus "%" belongs to table %',
            left(attached.key, 100), attached.name, attached.relation::regclass
            USING ERRCODE = 'object_in_use',
                HINT = 'Change the row of the table, or use another key.';
    END IF;
END $$;

-- Add or replace a document; false if nothing has changed; an error if it has twins in a unique corpus.
CREATE OR REPLACE FUNCTION textsim._write_or_raise(
    c textsim.corpus, source integer, key text, body text, scope text, expires_at timestamptz,
    unique_from double precision DEFAULT 0)
RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    outcome text := textsim._write_document(c, source, key, body, scope, expires_at, unique_from);
    relation record;
    twin record;
BEGIN
    IF outcome = 'twin' THEN
        PERFORM textsim._count_twins(c.id, 1);
        SELECT n.nspname, r.relname INTO relation
        FROM pg_class r JOIN pg_namespace n ON n.oid = r.relnamespace
        WHERE r.oid = coalesce((SELECT s.relation FROM textsim.source s WHERE s.id = source),
            format('textsim.%I', 'document_' || c.id)::regclass);
        SELECT t.key, t.similarity, count(*) OVER () AS count INTO twin
        FROM textsim._twins(c, key, body, scope, unique_from) t LIMIT 1;
        RAISE EXCEPTION 'near-duplicate text violates unique corpus "%": document "%" matches document "%" '
            'with similarity %', c.name, left(key, 100), left(twin.key, 100), twin.similarity
            USING ERRCODE = 'unique_violation', CONSTRAINT = c.name,
                SCHEMA = relation.nspname, TABLE = relation.relname,
                DETAIL = format('Key (%s) has similarity %s%s; %s is %s.%s', twin.key,
                    twin.similarity, ' in scope (' || scope || ')',
                    CASE WHEN c.unique_from IS NULL THEN 'the threshold' ELSE 'unique_from' END,
                    textsim._unique_from(c),
                    CASE WHEN twin.count > 1 THEN format(' %s documents match.', twin.count) END)
                    || coalesce(' It was rejected: ' || textsim._rejection(c, twin.key) || '.', '')
                    || CASE WHEN twin.similarity = 1 AND unique_from > 0
                        THEN ' It has the same shingles; unique_from => ''Infinity'' stores it.' ELSE '' END;
    END IF;
    RETURN outcome = 'written';
END $$;

-- The corpus with a name; an error if it is not unique, or if the caller may not write to it.
CREATE OR REPLACE FUNCTION textsim._required_unique(corpus text) RETURNS textsim.corpus
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._corpus(corpus);
BEGIN
    IF NOT c.is_unique THEN
        RAISE EXCEPTION 'corpus "%" is not unique', corpus
            USING ERRCODE = 'object_not_in_prerequisite_state',
                HINT = 'Create a corpus with is_unique => true.';
    END IF;
    -- Its writers wait for the locks that the caller takes, so a role that only reads may not take them.
    PERFORM textsim._check_writer(c.id);
    RETURN c;
END $$;

-- The best matches beside which a document was stored and that nobody has judged: the doubtful ones, then siblings.
-- All texts of one template may be siblings, so only those that share the most buckets are compared.
CREATE OR REPLACE FUNCTION textsim._near_misses(
    c textsim.corpus, document_key text, unique_from double precision)
RETURNS TABLE (outcome text, key text, similarity double precision, differs text[])
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
SET jit = off AS $$
DECLARE
    d record;
    form text;
    corpus_origin CONSTANT integer := textsim._origin(c);
    joined text[] := '{}';  -- what a chain of pairs that were judged the same connects with the document
BEGIN
    unique_from := greatest(unique_from, textsim._unique_from(c));
    IF c.guards = '{}' AND unique_from <= c.threshold THEN
        RETURN;
    END IF;
    EXECUTE format(
        'SELECT d.normal_form, d.word_ids, d.shingle_count, d.part, d.guard, '
            'textsim._stored_buckets($2, d.signature, d.part) AS buckets FROM textsim.%I d WHERE d.key = $1',
        'document_' || c.id)
    INTO d USING document_key, c;
    form := textsim._stored_form(c.id, d.word_ids, d.normal_form);
    IF textsim._is_judged(corpus_origin, document_key) THEN
        joined := array(
            SELECT g.key
            FROM (SELECT k.*, max(k.root) FILTER (WHERE k.key = document_key) OVER () AS own_root
                FROM textsim._judged_groups(array(SELECT j FROM textsim._obeyed_judgements(
                    corpus_origin, textsim._connected_keys(corpus_origin, ARRAY[document_key], '{same}')) j)) k
                WHERE k.is_joined) g
            WHERE g.root = g.own_root);
    END IF;
    RETURN QUERY
        SELECT b.outcome, b.key, b.similarity, textsim._differs(c, form, d.guard, b.key, b.guard)
        FROM (
            SELECT m.*
            FROM (
                SELECT o.outcome, s.*
                FROM (VALUES
                    ('doubtful', unique_from > c.threshold), ('sibling', c.guards <> '{}')) o (outcome, is_possible)
                CROSS JOIN LATERAL textsim._search(
                    c, d.buckets, NULL, form, NULL, d.shingle_count, document_key, c.threshold, NULL, NULL, d.part,
                    d.guard, o.outcome = 'sibling') s
                WHERE o.is_possible AND (o.outcome = 'sibling' OR NOT textsim._is_match(s.similarity, unique_from))
            ) m
            WHERE m.key <> ALL (joined) AND NOT EXISTS (
                SELECT FROM textsim.judgement j
                WHERE j.origin = corpus_origin
                    AND j.a = least(m.key COLLATE "C", document_key) AND j.b = greatest(m.key COLLATE "C", document_key)
                    AND NOT textsim._is_stale(j))
            ORDER BY m.outcome, m.similarity DESC, m.key COLLATE "C" LIMIT 10
        ) b
        ORDER BY b.outcome, b.similarity DESC, b.key COLLATE "C";
END $$;

CREATE OR REPLACE FUNCTION textsim.add_unique(
    corpus text, OUT outcome text, INOUT key text, text text, OUT similarity double precision, OUT differs text[],
    INOUT scope text DEFAULT NULL, force boolean DEFAULT false, unique_from double precision DEFAULT NULL,
    OUT reason text)
RETURNS SETOF record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE COST 100000 ROWS 1 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._required_unique(corpus);
BEGIN
    unique_from := textsim._raised(unique_from, force);
    PERFORM textsim._part_of(c, scope), textsim._check_document(c, key, text, scope);
    outcome := textsim._write_document(c, NULL, key, text, scope, textsim._new_expiry(c), unique_from);
    IF outcome = 'twin' THEN
        PERFORM textsim._count_twins(c.id, 1);
        RETURN QUERY
            SELECT CASE WHEN t.reason IS NULL THEN 'twin' ELSE 'rejected' END, t.key, t.similarity, '{}'::text[], scope,
                t.reason
            FROM (
                SELECT o.*, textsim._rejection(c, o.key) AS reason
                FROM textsim._twins(c, key, text, scope, unique_from) o OFFSET 0
            ) t
            ORDER BY t.reason IS NULL, t.similarity DESC, t.key COLLATE "C";
        RETURN;
    END IF;
    IF outcome = 'written' THEN
        RETURN QUERY SELECT n.*, scope, NULL::text FROM textsim._near_misses(c, key, unique_from) n;
        IF FOUND THEN
            RETURN;
        END IF;
        outcome := 'new';
    END IF;
    key := NULL;
    RETURN NEXT;
END $$;
COMMENT ON FUNCTION textsim.add_unique(text, text, text, text, boolean, double precision)
    IS 'Adds a document to a unique corpus as add() does, and returns what the write was, instead of an error. The '
    'outcome twin has a row for each document that keeps it out, best first, and nothing was written. The rows of '
    'rejected documents come first: their outcome is rejected, and reason says why. Otherwise the '
    'document is stored. Then there is a row for each of its best ten matches that no judgement answers, nor a chain of '
    'pairs that were judged the same: doubtful, below unique_from; or sibling, if differs names the guards that differ. '
    'If there are none, there is one row, without a key: new, or unchanged if its words have not changed. Three '
    'documents at most are compared as siblings, '
    'which share the most buckets. force and unique_from are as in add(). Raises an error if the corpus is not unique.';

CREATE OR REPLACE FUNCTION textsim.lock_corpus(corpus text, scope text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    c textsim.corpus := textsim._required_unique(corpus);
BEGIN
    IF scope IS NULL THEN
        PERFORM textsim._lock_unique(c.id, true);
    ELSE
        PERFORM textsim._lock_parts(c.id, ARRAY[textsim._part_bits(textsim._part_of(c, scope))]);
    END IF;
END $$;
COMMENT ON FUNCTION textsim.lock_corpus(text, text)
    IS 'Locks a unique corpus, or one scope of it, against other writers until the end of the transaction. Writers of '
    'other scopes go on. A transaction that writes many documents calls it first, so that it cannot deadlock with '
    'another such transaction. A transaction of several scopes locks them in order. Raises an error if the corpus is '
    'not unique, if it is not scoped and scope is set, or if the role may not write to it.';
