-- Everything of 0001_initial.sql, but for the schema itself: Alembic keeps its version there.
DROP FUNCTION textsim._drop_storage(integer);
DROP FUNCTION textsim._create_storage(integer);
DROP TABLE textsim.band;
DROP TABLE textsim.document;
DROP SEQUENCE textsim.document_id;
DROP TABLE textsim.word;
DROP TABLE textsim.corpus;
