-- Everything of 0001_initial.sql, but for the schema itself: Alembic keeps its version there.
DROP FUNCTION textsim._drop_storage(integer);
DROP FUNCTION textsim._create_storage(integer);
DROP FUNCTION textsim._grant_like(regclass, regclass);
DROP SEQUENCE textsim.last_notice;
DROP TABLE textsim.pending;
DROP TABLE textsim.source;
DROP TABLE textsim.band;
DROP TABLE textsim.document;
DROP SEQUENCE textsim.document_id;
DROP TABLE textsim.word;
DROP TABLE textsim.corpus;
