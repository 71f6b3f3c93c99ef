-- The settings of the transaction are those from before the script.
DO $do$
BEGIN
    PERFORM set_config('client_min_messages', current_setting('textsim.client_min_messages'), true);
    PERFORM set_config('search_path', current_setting('textsim.search_path'), true);
END $do$;
