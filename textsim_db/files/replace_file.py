"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from textsim_db.files.file_kinds import STDIN


@contextmanager
def replacing(output: str) -> Iterator[IO[bytes]]:
    """Open a file for writing that gets its name only when it is complete; "-" is standard output.

    If the name is a symbolic link, its target is replaced. Devices and pipes are written directly.
    """
    try:
        with _written(output) as file:
            yield file
    except OSError as error:
        # A full disk's error names no file.
        error.filename = error.filename or ("standard output" if output == STDIN else output)
        raise


@contextmanager
def _written(output: str) -> Iterator[IO[bytes]]:
    if output == STDIN:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if is_special(output):
        with open(output, "wb") as file:
            yield file
        return
    output = os.path.realpath(output)
    folder, name = os.path.split(output)
    handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    try:
        with open(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode_of(output))
        os.replace(temporary, output)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def is_special(name: str) -> bool:
    """Say whether a file with this name exists and is not a regular file, such as a pipe."""
    try:
        return not stat.S_ISREG(os.stat(name).st_mode)
    except FileNotFoundError:
        return False


def _mode_of(output: str) -> int:
    with suppress(OSError):
        return os.stat(output).st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
