-- A step holds only what CREATE OR REPLACE cannot do: ALTER, DROP, UPDATE. The files of sql/schema run after the last one.

SELECT textsim._begin_step('document', 'word', 'node', 'cluster_event');

-- Tracked clusters have linkage kept only. The next update computes those of another linkage anew, with their ids.
DO $do$
DECLARE
    tracking record;
BEGIN
    -- An update removes old events itself.
    FOR tracking IN SELECT t.corpus_id FROM textsim.tracked t LOOP
        EXECUTE format('DROP TRIGGER IF EXISTS track_insert ON textsim.%I', 'cluster_event_' || tracking.corpus_id);
    END LOOP;
    FOR tracking IN SELECT t.corpus_id, t.mode FROM textsim.tracked t WHERE t.linkage <> 'kept' LOOP
        -- Inline, this transaction would compute them when it commits.
        UPDATE textsim.tracked t SET linkage = 'kept', mode = 'queue' WHERE t.corpus_id = tracking.corpus_id;
        EXECUTE format('SELECT textsim.%I($1)', '_mend_tracked_' || tracking.corpus_id) USING tracking.corpus_id;
        UPDATE textsim.tracked t SET mode = tracking.mode WHERE t.corpus_id = tracking.corpus_id;
    END LOOP;
END $do$;
ALTER TABLE textsim.tracked DROP CONSTRAINT tracked_linkage_check,
    ADD CONSTRAINT tracked_linkage_check CHECK (linkage = 'kept');

CREATE FUNCTION textsim._guard_kinds() RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '{numbers,negations,words}'::text[];
ALTER TABLE textsim.corpus DROP CONSTRAINT corpus_guards_check,
    ADD CONSTRAINT corpus_guards_check CHECK (guards <@ textsim._guard_kinds());
ALTER TABLE textsim.corpus ADD COLUMN guard_fillers text[];
ALTER TABLE textsim.corpus ALTER guard_fillers SET DEFAULT '{}';
UPDATE textsim.corpus SET guard_fillers = '{}';
ALTER TABLE textsim.corpus ALTER guard_fillers SET NOT NULL;

-- A judgement remembers the texts that were judged. Those of old judgements are unknown, so the present ones are taken.
ALTER TABLE textsim.judgement ADD COLUMN hash_a uuid;
ALTER TABLE textsim.judgement ADD COLUMN hash_b uuid;
DO $$
DECLARE
    c textsim.corpus;
    side text;
BEGIN
    FOR c IN
        SELECT k.* FROM textsim.corpus k
        WHERE EXISTS (SELECT FROM textsim.judgement j WHERE j.origin = coalesce(k.origin, k.id))
    LOOP
        FOREACH side IN ARRAY '{a,b}'::text[] LOOP
            EXECUTE format(
                'UPDATE textsim.judgement j SET hash_%1$s = encode(substr(sha256(convert_to('
                'coalesce(d.normal_form, textsim._normal_form_of_%2$s(d.word_ids), ''''), ''UTF8'')), 1, 16), ''hex'')::uuid '
                'FROM textsim.%3$I d WHERE j.origin = %4$s AND d.key = j.%1$s',
                side, c.id, 'document_' || c.id, coalesce(c.origin, c.id));
        END LOOP;
    END LOOP;
END $$;
DROP TRIGGER log_changed ON textsim.judgement;
DROP FUNCTION textsim.judgements(text);
DROP FUNCTION textsim.judge(text, text, text, text, text, text, text, double precision);

-- The records that a document stands for, by their keys: those of old sizes are unknown. And why a document was rejected.
ALTER TABLE textsim.document ADD COLUMN counted_keys bigint[], ADD COLUMN rejected text;
DO $$
DECLARE
    corpus_id integer;
BEGIN
    FOR corpus_id IN SELECT c.id FROM textsim.corpus c LOOP
        EXECUTE format('ALTER TABLE textsim.%I ADD COLUMN counted_keys bigint[], ADD COLUMN rejected text',
            'document_' || corpus_id);
    END LOOP;
END $$;

-- A corpus of characters stores the normal forms of its documents, and no word ids. Triggers would compare the forms of
-- all documents with those before, which are equal.
DO $$
DECLARE
    corpus_id integer;
BEGIN
    FOR corpus_id IN SELECT c.id FROM textsim.corpus c WHERE c.unit = 'char' LOOP
        IF to_regclass('textsim.node_' || corpus_id) IS NOT NULL THEN
            EXECUTE format(
                'UPDATE textsim.%I n '
                'SET words_hash = textsim._words_hash(NULL, textsim._normal_form_of_%s(d.word_ids), d.part) '
                'FROM textsim.%I d '
                'WHERE d.id = n.document_id AND n.words_hash = textsim._words_hash(d.word_ids, NULL, d.part)',
                'node_' || corpus_id, corpus_id, 'document_' || corpus_id);
        END IF;
        EXECUTE format('ALTER TABLE textsim.%I DISABLE TRIGGER USER', 'document_' || corpus_id);
        EXECUTE format(
            'UPDATE textsim.%1$I SET normal_form = textsim._normal_form_of_%2$s(word_ids), word_ids = NULL '
            'WHERE word_ids IS NOT NULL', 'document_' || corpus_id, corpus_id);
        EXECUTE format(
            'ALTER TABLE textsim.%I ENABLE TRIGGER USER, '
            'ADD CONSTRAINT document_no_word_ids CHECK (word_ids IS NULL)', 'document_' || corpus_id);
        EXECUTE format('TRUNCATE textsim.%I', 'word_' || corpus_id);
    END LOOP;
    DELETE FROM textsim.pending p USING textsim.corpus c
    WHERE c.id = p.corpus_id AND p.kind = 'words' AND c.unit = 'char' AND c.language IS NULL;
END $$;


-- Functions of clusters, which each tracked corpus has a copy of, functions with another result or other defaults, and
-- public functions that are gone. Other private functions stay until the next step: a call that waits for this one still
-- calls them.
DO $do$
DECLARE
    function regprocedure;
BEGIN
    FOR function IN
        SELECT p.oid FROM pg_proc p
        WHERE p.pronamespace = 'textsim'::regnamespace
            AND regexp_replace(p.proname, '_[0-9]+$', '') = ANY (ARRAY[
                '_connected_nodes', '_lost_parts', '_joined_groups', '_with_clusters', '_with_judged_clusters',
                '_touching_nodes', '_regrouped_nodes', '_complete_groups', '_nodes_after_kept', '_followers',
                '_move_to_nodes', '_kept_groups', '_store_groups', '_update_batch', '_hashes_of', '_unsearched_nodes',
                '_find_links', '_store_links', '_judged_links', '_kept_neighbours', '_tracking_triggers', '_candidates', '_search'])
    LOOP
        EXECUTE format('DROP FUNCTION %s', function);
    END LOOP;
END $do$;
DROP FUNCTION textsim.create_corpus(
    text, text, double precision, double precision, integer, bigint, integer, integer, text[], text,
    boolean, double precision, boolean, interval, double precision, integer, boolean, text[], text[]);
DROP FUNCTION textsim.containing(text, text, double precision, integer, text, text);
DROP FUNCTION textsim.candidate_pairs(text, text);
DROP FUNCTION textsim.candidates_of(text, text);
DROP FUNCTION textsim.buckets(text, integer[], text);
DROP FUNCTION textsim.estimate(integer[], integer[]);
DROP FUNCTION textsim.lock_corpus(text);
DROP FUNCTION textsim.add_unique(text, text, text, text, boolean, double precision);
DROP FUNCTION textsim.lock_scope(text, text);
DROP FUNCTION textsim.match_pairs(text);
DROP FUNCTION textsim.common_runs(text, text, text, integer);
DROP FUNCTION textsim.members(text);
DROP FUNCTION textsim._tracking_functions(integer);
DROP FUNCTION textsim._functions_like(text[], integer);
DROP FUNCTION textsim.containment(text, text, text, integer);
DROP FUNCTION textsim.cosine_similarity(text, text);
DROP FUNCTION textsim.levenshtein_words(text, text, double precision, double precision, double precision);
DROP FUNCTION textsim.words(text);
DROP FUNCTION textsim.shingles(text, text, integer);
DROP FUNCTION textsim.passages_of(text, text, integer, integer);
DROP FUNCTION textsim.grant_reader(regrole);
DROP FUNCTION textsim.grant_reader(regrole, text);
DROP FUNCTION textsim.grant_writer(regrole);
DROP FUNCTION textsim.grant_writer(regrole, text);
