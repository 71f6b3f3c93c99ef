-- The functions of 0003_sources.sql, those that use others first; before them the triggers on
-- attached tables, with their functions.
DO $$
DECLARE
    attached record;
BEGIN
    FOR attached IN SELECT id FROM textsim.source LOOP
        EXECUTE format('DROP FUNCTION IF EXISTS textsim.%I() CASCADE', '_changes_' || attached.id);
    END LOOP;
    DELETE FROM textsim.pending WHERE source_id IS NOT NULL;
    DELETE FROM textsim.source;
END
$$;
DROP FUNCTION textsim._replace_corpus(integer, integer);
DROP FUNCTION textsim._refuse_write() CASCADE;
DROP FUNCTION textsim.drop_corpus(text);
DROP FUNCTION textsim.create_corpus(text, text, double precision, double precision, integer, bigint, integer, integer, text[], text);
DROP FUNCTION textsim._settings_fault(text, text, double precision, double precision, integer, bigint, integer, integer);
DROP FUNCTION textsim._chosen_rows(double precision, double precision, integer);
DROP FUNCTION textsim._found(double precision, integer, integer);
DROP FUNCTION textsim._draw(bigint, integer);
DROP FUNCTION textsim._unsigned(bigint);
DROP FUNCTION textsim._wrapped(numeric);
DROP FUNCTION textsim.revoke_all(regrole);
DROP FUNCTION textsim.grant_writer(regrole, text);
DROP FUNCTION textsim.grant_reader(regrole, text);
DROP FUNCTION textsim.grant_writer(regrole);
DROP FUNCTION textsim._grant_shared(regrole);
DROP FUNCTION textsim.grant_reader(regrole);
DROP FUNCTION textsim.status(text);
DROP VIEW textsim.sources;
DROP FUNCTION textsim.detach(text, regclass);
DROP FUNCTION textsim.attach(text, regclass, name, name, text);
DROP FUNCTION textsim._changed(regclass, name);
DROP FUNCTION textsim._check_owner(regclass, text);
DROP FUNCTION textsim._unfit_column(regclass, name, boolean);
DROP FUNCTION textsim._base_type(oid);
DROP FUNCTION textsim._unfit(regclass);
DROP FUNCTION textsim._release_source(integer);
DROP FUNCTION textsim._activate_source(integer);
DROP FUNCTION textsim._prepare_source(text, regclass, name, name, text);
DROP FUNCTION textsim._make_trigger_function(textsim.source);
DROP FUNCTION textsim._by_row(regclass, text);
DROP FUNCTION textsim._inline_body(textsim.source);
DROP FUNCTION textsim._queue_body(textsim.source, boolean);
DROP FUNCTION textsim._enqueue(integer, integer, text[]);
DROP FUNCTION textsim._wake();
DROP FUNCTION textsim.remove(text, text);
DROP FUNCTION textsim.add(text, text, text);
DROP FUNCTION textsim._take_all(textsim.corpus, integer);
DROP FUNCTION textsim._take(textsim.corpus, integer, text);
DROP FUNCTION textsim._put(textsim.corpus, integer, text, text);
DROP FUNCTION textsim._is_live(integer);
DROP FUNCTION textsim._known(text);
DROP FUNCTION textsim._fault(text, text);
