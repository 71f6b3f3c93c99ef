-- What pg_dump must take along although it belongs to the extension. What
-- create_corpus makes does not: it is dumped like any other table, sequence or function.
SELECT pg_catalog.pg_extension_config_dump('textsim.corpus', '');
SELECT pg_catalog.pg_extension_config_dump('textsim.corpus_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('textsim.word', '');
SELECT pg_catalog.pg_extension_config_dump('textsim.word_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('textsim.source', '');
SELECT pg_catalog.pg_extension_config_dump('textsim.source_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('textsim.pending', '');
SELECT pg_catalog.pg_extension_config_dump('textsim.pending_id_seq', '');
