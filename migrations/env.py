"""Alembic's environment: runs the revisions on the connection of textsim_db.db.schema.

The alembic command line connects to TEXTSIM_DATABASE_URL.
"""

import os

from alembic import context
from sqlalchemy import Connection, create_engine

from textsim_db.db.addresses import sqlalchemy_url


def run(connection: Connection) -> None:
    """Run the revisions in one transaction, with Alembic's table in the schema textsim."""
    connection.exec_driver_sql("CREATE SCHEMA IF NOT EXISTS textsim")
    context.configure(
        connection=connection,
        version_table="alembic_version",
        version_table_schema="textsim",
    )
    with context.begin_transaction():
        context.run_migrations()


if "connection" in context.config.attributes:
    run(context.config.attributes["connection"])
else:
    with create_engine(sqlalchemy_url(os.environ["TEXTSIM_DATABASE_URL"])).begin() as connection:
        run(connection)
