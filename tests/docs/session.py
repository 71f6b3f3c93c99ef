"""Snippets of one page run in a session of its own: one shell, one Python namespace, one database."""

from __future__ import annotations

import contextlib
import io
import os
import re
import selectors
import signal
import subprocess
import sys
import time
import traceback
import types
import warnings
from collections.abc import Iterator
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from tests.docs.page import Snippet
from tests.support.servers import programs_of
from textsim_db.corpus.database import URL_VARIABLE

SECONDS = 180.0
_END = "end of the output:"
_COMPILING = re.compile(r"^(compiling (once|all)|compiled [0-9]|all kernels are).*\n", re.MULTILINE)
"""Lines about kernels. Earlier pages decide whether a command prints them."""


class SnippetFailed(Exception):
    """A snippet whose output is not shown ended with an error."""


class Session:
    """Runs the snippets of a page in a folder, on a database."""

    def __init__(self, page: Path, folder: Path, database_url: str, *programs: Path) -> None:
        self.page = page
        self.database_url = database_url
        self.environment = {**environment(*programs), **addresses(database_url)}
        # Mapped classes look for the names of their annotations in their module.
        self.module = types.ModuleType("page")
        self.shell = subprocess.Popen(
            ["sh"],
            cwd=folder,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def close(self) -> None:
        """End the shell and every process that it started."""
        assert self.shell.stdin
        assert self.shell.stdout
        self.shell.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.shell.pid, signal.SIGKILL)
        self.shell.wait()
        self.shell.stdout.close()

    def run(self, snippet: Snippet) -> str:
        """Run a snippet and return what it printed.

        Raises SnippetFailed if it fails and the page has no place for its output.
        """
        if snippet.language == "python":
            return self._run_python(snippet)
        if snippet.language == "sql":
            output, status = self._run_sql(snippet)
        else:
            output, status = self._run_command(snippet.code)
        if status and snippet.expected is None:
            raise SnippetFailed(f"exit status {status}\n{output}")
        return output

    def _run_python(self, snippet: Snippet) -> str:
        # A traceback and a warning then name the line of the page.
        code = "\n" * (snippet.line - 1) + snippet.code
        with contextlib.redirect_stdout(io.StringIO()) as out:
            try:
                exec(compile(code, str(self.page), "exec", dont_inherit=True), vars(self.module))
            except Exception as error:
                if snippet.expected is None:
                    raise SnippetFailed("".join(traceback.format_exception(error))) from error
                out.write("".join(traceback.format_exception_only(error)))
        return out.getvalue()

    def _run_sql(self, snippet: Snippet) -> tuple[str, int]:
        stop = snippet.expected is None
        done = subprocess.run(
            [
                "psql",
                "--no-psqlrc",
                "--quiet",
                "-v",
                f"ON_ERROR_STOP={int(stop)}",
                self.database_url,
            ],
            env=self.environment,
            input=snippet.code,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return done.stdout, done.returncode

    def _run_command(self, command: str) -> tuple[str, int]:
        """Run a command in the shell, so that folders, variables and jobs last until the page ends."""
        assert self.shell.stdin
        script = f"{{ {command}\n}} </dev/null\nprintf '\\n{_END} %s\\n' $?\n"
        self.shell.stdin.write(script.encode())
        self.shell.stdin.flush()
        output, _, status = self._read_to_end().rpartition(f"\n{_END} ")
        return _COMPILING.sub("", output), int(status)

    def _read_to_end(self) -> str:
        assert self.shell.stdout
        deadline = time.monotonic() + SECONDS
        data = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.shell.stdout, selectors.EVENT_READ)
            while f"\n{_END} ".encode() not in data or not data.endswith(b"\n"):
                part = b""
                if selector.select(timeout=1):
                    part = os.read(self.shell.stdout.fileno(), 65536)
                elif time.monotonic() > deadline:
                    raise SnippetFailed(f"no end after {SECONDS:.0f} s:\n{data.decode()}")
                # A background process may hold the pipe open after the shell has ended.
                if not part and self.shell.poll() is not None:
                    raise SnippetFailed(f"the command ended the shell:\n{data.decode()}")
                data += part
        return data.decode()


@contextlib.contextmanager
def page_session(page: Path, folder: Path, database_url: str, *programs: Path) -> Iterator[Session]:
    """Lend the session of a page, with a folder to work in, and folders of programs."""
    session = Session(page, folder, database_url, *programs)
    before = os.environ.get(URL_VARIABLE)
    os.environ[URL_VARIABLE] = database_url
    sys.modules[session.module.__name__] = session.module
    try:
        with contextlib.chdir(folder), warnings.catch_warnings():
            yield session
    finally:
        del sys.modules[session.module.__name__]
        if before is None:
            del os.environ[URL_VARIABLE]
        else:
            os.environ[URL_VARIABLE] = before
        session.close()


def environment(*programs: Path) -> dict[str, str]:
    """Return the environment of commands: plain output, and folders of programs that come first."""
    postgres = programs_of(18)
    folders = [*programs, Path(sys.executable).parent, *([postgres] if postgres else [])]
    kept = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "PS4")}
    return {
        **kept,
        "PATH": os.pathsep.join(map(str, [*folders, os.environ["PATH"]])),
        "COLUMNS": "100",
        "LC_ALL": "C.UTF-8",
        "PYTHONUTF8": "1",
        "TZ": "UTC",
    }


def addresses(database_url: str) -> dict[str, str]:
    """Return the variables with the address of the page's database."""
    address = conninfo_to_dict(database_url)
    libpq = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE"}
    libpq["password"] = "PGPASSWORD"
    known = {libpq[key]: str(value) for key, value in address.items() if key in libpq}
    return {**known, URL_VARIABLE: database_url}
