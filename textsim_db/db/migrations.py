"""The functions for revisions of Alembic: they build the newest schema, or run a step to it."""

from __future__ import annotations

from alembic import context, op
from alembic.util import CommandError

from textsim_db.db import schema, statements


def create() -> None:
    """Build the newest schema, in the first revision; the steps after it have nothing to do."""
    _check_target()
    context.config.attributes["is_new"] = True
    _run(schema.files())


def run_step(revision: str) -> None:
    """Run the step of a revision, and after the last step the files of the schema."""
    if "is_new" in context.config.attributes:
        return
    _check_target()
    _run(schema.file("schema/13_begin_step.sql") + schema.file(f"upgrade/{revision}.sql"))
    if revision == schema.head():
        _run(schema.files())


def undo_step() -> None:
    """Leave the schema as it is, because base is the only target of a downgrade."""
    if context.get_revision_argument() is not None:
        raise CommandError(
            "expected base, which removes the schema; older versions of textsim-db work with this one"
        )


def remove() -> None:
    """Remove everything in the schema except Alembic's table, in the first revision."""
    _check_target()
    _run(schema.file("remove.sql"))


def _check_target() -> None:
    if context.get_revision_argument() not in (None, schema.head()):
        raise CommandError(f"expected the target head, which is {schema.head()}")
    if not context.is_offline_mode() and _is_extension():
        raise CommandError("the schema textsim is an extension: change it with ALTER EXTENSION")


def _is_extension() -> bool:
    return bool(op.get_bind().exec_driver_sql(statements.IS_EXTENSION).scalar_one())


def _run(script: str) -> None:
    """Run a script, or print it if Alembic prints SQL."""
    if context.is_offline_mode():
        settings = (
            f"SET LOCAL {each} = {value};\n" for each, value in schema.SCRIPT_SETTINGS.items()
        )
        context.static_output("".join(settings) + script)
    else:
        schema.run_script(op.get_bind(), script)
