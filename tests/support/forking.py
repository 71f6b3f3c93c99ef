"""Scripts that fork: each runs in a process group that is ended as a whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress

PATIENCE = 300.0
"""Seconds after which a script counts as hung; a script takes a few seconds."""
START = """
import logging, os, sys, threading
import psycopg, sqlalchemy
import textsim_db as ts

url = sys.argv[1]

def fork(work):
    # Run work in a child, and return the child's process id.
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            os._exit(1)
    return child

def wait_for(children):
    for child in children:
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0

def documents(name):
    return [(f"{name}-{i}", f"document number {i} of {name} with some words") for i in range(100)]
"""


def run_script(script: str, url: str) -> tuple[int, str, str]:
    """Run a script, return its exit status, output and errors, and end its children."""
    command = [sys.executable, "-c", START + script, url]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            output, errors = process.communicate(timeout=PATIENCE)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, output, errors
