-- Alembic's table, with the revision of this schema: `textsim db install` starts from it.
CREATE TABLE IF NOT EXISTS textsim.alembic_version (
    version_num character varying(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO textsim.alembic_version VALUES (':revision') ON CONFLICT DO NOTHING;
