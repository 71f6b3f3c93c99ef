-- What pg_dump must take along although it belongs to the extension. The partitions do not: they
-- are made by create_corpus and are dumped like any other table.
SELECT pg_catalog.pg_extension_config_dump('textsim.corpus', '');
SELECT pg_catalog.pg_extension_config_dump('textsim.corpus_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('textsim.word', '');
SELECT pg_catalog.pg_extension_config_dump('textsim.word_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('textsim.document_id', '');
SELECT pg_catalog.pg_extension_config_dump('textsim.source', '');
SELECT pg_catalog.pg_extension_config_dump('textsim.source_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('textsim.pending', '');
SELECT pg_catalog.pg_extension_config_dump('textsim.pending_id_seq', '');
