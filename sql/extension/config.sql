-- pg_dump skips the objects of an extension, except these tables and sequences. The tables, sequences and
-- functions of a corpus do not belong to the extension, so pg_dump includes them anyway.
SELECT pg_catalog.pg_extension_config_dump('textsim.corpus', '');
SELECT pg_catalog.pg_extension_config_dump('textsim.corpus_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('textsim.common', '');
SELECT pg_catalog.pg_extension_config_dump('textsim.word', '');
SELECT pg_catalog.pg_extension_config_dump('textsim.word_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('textsim.source', '');
SELECT pg_catalog.pg_extension_config_dump('textsim.source_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('textsim.pending', '');
SELECT pg_catalog.pg_extension_config_dump('textsim.pending_id_seq', '');
