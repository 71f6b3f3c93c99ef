"""Alembic's environment: runs the revisions on the connection of textsim_db.db.schema.

The alembic command line connects to TEXTSIM_DATABASE_URL; with --sql it connects to no server.
"""

import os
from functools import partial

from alembic import context
from sqlalchemy import Connection, MetaData, create_engine

from textsim_db.db import schema
from textsim_db.db.addresses import sqlalchemy_url

configure = partial(
    context.configure,
    version_table="alembic_version",
    version_table_schema="textsim",
    # `alembic check` compares revisions only: the files of sql/schema say what the tables are.
    target_metadata=MetaData(),
    include_name=lambda *_: False,
)


def run(connection: Connection) -> None:
    """Run the revisions in one transaction, with Alembic's table in the schema textsim."""
    configure(connection=connection)
    if not context.get_context().opts.get("dont_mutate"):  # `alembic current` only reads
        schema.prepare(connection)
    with context.begin_transaction():
        context.run_migrations()


if context.is_offline_mode():
    configure(dialect_name="postgresql")
    with context.begin_transaction():
        context.static_output("CREATE SCHEMA IF NOT EXISTS textsim;")
        context.run_migrations()
elif "connection" in context.config.attributes:
    run(context.config.attributes["connection"])
else:
    with create_engine(sqlalchemy_url(os.environ["TEXTSIM_DATABASE_URL"])).begin() as connection:
        run(connection)
