"""An application installs and upgrades the schema in revisions of its own Alembic."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import alembic.command
import pytest
import sqlalchemy as sa
from alembic.autogenerate import produce_migrations
from alembic.runtime.migration import MigrationContext
from alembic_utils.pg_function import PGFunction
from alembic_utils.pg_materialized_view import PGMaterializedView
from alembic_utils.replaceable_entity import register_entities, registry
from alembic_utils.reversible_op import ReversibleOp
from sqlalchemy.exc import SAWarning

import textsim_db as ts
from tests.support.connections import Connection, engine_of
from tests.support.own_alembic import PAGE, own_alembic
from textsim_db.settings.named_values import Mode

IncludeName = Callable[[str | None, str, Mapping[str, str | None]], bool]


def test_an_application_installs_in_a_revision(tmp_path: Path, empty_database_url: str) -> None:
    application = own_alembic(tmp_path, empty_database_url)
    alembic.command.upgrade(application, "head")
    with ts.connect(empty_database_url) as db:
        db.create_corpus("news").attach("article", "id", "body")
    alembic.command.downgrade(application, "1b2c")
    with ts.connect(empty_database_url) as db:
        assert list(db.corpora()) == ["news"]
    alembic.command.upgrade(application, "head")
    with ts.connect(empty_database_url) as db:
        assert list(db.corpora()) == ["news", "of the application"]


def proposed_changes(address: str, include_name: IncludeName | None, schemas: bool) -> list[str]:
    """Return what autogenerate would do to the database, in an application with one table."""
    metadata = sa.MetaData()
    columns = sa.Column("id", sa.Integer, primary_key=True), sa.Column("body", sa.Text)
    sa.Table("article", metadata, *columns)
    options = {"include_schemas": schemas, "include_name": include_name}
    with engine_of(address) as engine, engine.connect() as connection, warnings.catch_warnings():
        # SQLAlchemy does not know the types of some of our columns.
        warnings.simplefilter("ignore", SAWarning)
        context = MigrationContext.configure(connection, opts=options)
        operations = produce_migrations(context, metadata).upgrade_ops
        assert operations is not None
        return [
            each.target.identity if isinstance(each, ReversibleOp) else str(vars(each))
            for each in operations.ops
        ]


def include_name_of_page() -> IncludeName:
    """Return the filter that the page shows."""
    (block,) = re.findall(r"```python\n(def include_name.*?)```", PAGE.read_text("utf-8"), re.S)
    names: dict[str, Any] = {}
    exec(block, names)
    filter_of_page: IncludeName = names["include_name"]
    return filter_of_page


@pytest.mark.sampled
@pytest.mark.parametrize("schemas", [False, True], ids=["one schema", "all schemas"])
@pytest.mark.parametrize("with_utils", [False, True], ids=["alembic", "alembic_utils"])
def test_autogenerate_leaves_alone_what_textsim_db_made(
    db: ts.Database, connection: Connection, schemas: bool, with_utils: bool
) -> None:
    connection.execute("CREATE SCHEMA blog")
    tables = ("article", Mode.INLINE), ("blog.post", Mode.QUEUE), ("blog.memo", Mode.INLINE)
    for name, mode in tables:
        connection.execute(f"CREATE TABLE {name} (id integer PRIMARY KEY, body text)".encode())
        db.create_corpus(name, is_unique=mode == "inline").attach(name, "id", "body", mode)
    connection.execute("CREATE FUNCTION hello() RETURNS text LANGUAGE sql AS $$ SELECT 'hello' $$")
    connection.execute("CREATE FUNCTION of_before() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$")
    registered = PGFunction(
        schema="public",
        signature="hello()",
        definition="RETURNS text LANGUAGE sql AS $$ SELECT 'hello' $$",
    )
    # With a kind of objects that the database lacks, alembic_utils finds nothing.
    register_entities(
        [registered] if with_utils else [],
        entity_types=None if with_utils else [PGMaterializedView],
    )
    try:
        unfiltered = proposed_changes(db.url, None, schemas)
        changes = proposed_changes(db.url, include_name_of_page(), schemas)
    finally:
        registry.clear()  # type: ignore[no-untyped-call]
    assert any("textsim" in each for each in unfiltered) is (schemas or with_utils)
    assert [each for each in changes if "textsim" in each] == []
    # Objects of the application are compared as before.
    assert any("of_before" in each for each in changes) is with_utils
    assert any("'post'" in each for each in changes) is schemas
