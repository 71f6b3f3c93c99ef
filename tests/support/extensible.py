"""A server on which CREATE EXTENSION textsim works."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from psycopg import sql
from sqlalchemy import make_url

from tests.support.dumps import run_command
from tests.support.servers import Server


@dataclass
class Extensible(Server):
    """A server whose databases, if created here, find the extension."""

    control_path: str = ""
    variables: tuple[str, ...] = ()
    """Variables of the Makefile, which installs the files for this server."""

    def install(self, folder: Path) -> None:
        """Install the files of the extension from a folder sql."""
        run_command("make", "-C", str(folder / "extension"), "install", *self.variables)

    @contextmanager
    def database(self, options: str, copies_files: bool = False) -> Iterator[str]:
        with super().database(options, copies_files) as address:
            if self.control_path:
                name = sql.Identifier(str(make_url(address).database))
                statement = sql.SQL("ALTER DATABASE {} SET extension_control_path = {}")
                self.execute(statement.format(name, self.control_path))
            yield address
