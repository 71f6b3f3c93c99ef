-- What `textsim db upgrade` goes on from: Alembic's own table, with the revision of this schema.
CREATE TABLE textsim.alembic_version (
    version_num character varying(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO textsim.alembic_version VALUES (':revision');
