# Runs once, on the new server of docker-compose.yml: a role that owns the database, and one for workers.
psql -X --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" --set ON_ERROR_STOP=1 \
    --set owner="$TEXTSIM_PASSWORD" --set worker="$TEXTSIM_WORKER_PASSWORD" <<'END'
-- Not named textsim: the tables of such a role would get into the schema of its name.
CREATE ROLE app LOGIN PASSWORD :'owner';
CREATE ROLE indexer LOGIN PASSWORD :'worker';
ALTER DATABASE app OWNER TO app;
ALTER DEFAULT PRIVILEGES FOR ROLE app IN SCHEMA public GRANT SELECT ON TABLES TO indexer;
-- From now on the superuser connects inside of the container only.
ALTER ROLE postgres PASSWORD NULL;
END
