"""Run the tests on a server: python -m tests.own_postgres PG_BIN [NAME=VALUE]... [ARGUMENT]...

PG_BIN is a folder with initdb and postgres, such as /usr/lib/postgresql/15/bin; NAME=VALUE is a setting
of the server, such as work_mem=1MB; the arguments are passed to pytest. The server listens on a socket
in a temporary folder, and ends with the tests. Its other settings are those of initdb, so JIT is on
where the programs have it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

from tests.support.servers import URL_VARIABLE, new_folder, run_server

SETTING = re.compile(r"[a-z_]+=.*")


def main() -> int:
    programs = Path(sys.argv[1] if len(sys.argv) > 1 else "")
    if not (programs / "initdb").exists():
        print(f"error: there is no initdb in {str(programs)!r}; name a folder with it: PG_BIN=...")
        return 2
    settings = [*takewhile(SETTING.fullmatch, sys.argv[2:])]
    folder = new_folder("ts-")
    try:
        with run_server(programs, folder, *settings) as url:
            command = [sys.executable, "-m", "pytest", *sys.argv[2 + len(settings) :]]
            return subprocess.run(command, env=os.environ | {URL_VARIABLE: url}).returncode
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
