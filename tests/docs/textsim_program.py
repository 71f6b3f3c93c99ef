"""The program textsim of a page's shell: each call is a fork of one process that has loaded its modules.

A process of its own would load modules and kernels for each command, which takes it two seconds.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path

from typer.testing import CliRunner

import textsim_db
from textsim_db.base import numba_compiler
from textsim_db.cli import app, main

_CLIENT = """\
#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    call = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(call).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(call)
    sys.exit(int(server.recv(8) or b"255"))
"""


@contextlib.contextmanager
def textsim_program(folder: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """Make the program in a folder, and run its process meanwhile."""
    address = folder / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen()
        command = [sys.executable, "-m", __name__, str(listener.fileno())]
        process = subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
    program = folder / "textsim"
    program.write_text(_CLIENT.format(python=sys.executable, address=str(address)), "utf-8")
    program.chmod(0o755)
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _serve(listener: socket.socket) -> None:
    """Load all modules, and fork for each call. The parent has no connection and no thread to share."""
    for module in pkgutil.walk_packages(textsim_db.__path__, "textsim_db."):
        if ".spark" not in module.name and "__main__" not in module.name:
            importlib.import_module(module.name)
    importlib.import_module("sqlalchemy.dialects.postgresql.psycopg")
    # Else `db install` uses every kernel, for 20 s; no page shows the line that it prints then.
    numba_compiler.are_compiled = lambda: True
    # This command loads the kernels that most commands need.
    CliRunner().invoke(app, ["compare", "one text", "another text"], catch_exceptions=False)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    while True:
        client, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            client.sendall(str(_run(client)).encode())
            os._exit(0)
        client.close()


def _run(client: socket.socket) -> int:
    """Run the command of a client in this process, and return its exit status."""
    size, streams, _, _ = socket.recv_fds(client, 8, 3)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # Streams of the parent may have been made for files of another kind.
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
    with client.makefile("rb") as file:
        arguments, folder, environment = json.loads(file.read(int.from_bytes(size, "big")))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["textsim", *arguments]
    status: object = 0
    try:
        main()
    except SystemExit as error:
        status = error.code
    except BaseException:
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError):  # nobody reads the output any more
        sys.stdout.flush()
    return status if isinstance(status, int) else int(status is not None)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as _listener:
        _serve(_listener)
