"""Run the tests on a server of any version: python -m tests.own_postgres PG_BIN [ARGUMENT]...

PG_BIN is a folder with initdb and postgres, such as /usr/lib/postgresql/15/bin; the arguments are
passed to pytest. The server listens on a socket in a temporary folder, and ends with the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.servers import URL_VARIABLE, run_server


def main() -> int:
    programs = Path(sys.argv[1] if len(sys.argv) > 1 else "")
    if not (programs / "initdb").exists():
        print(f"error: there is no initdb in {str(programs)!r}; name a folder with it: PG_BIN=...")
        return 2
    with tempfile.TemporaryDirectory(prefix="ts-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with run_server(programs, folder) as url:
            command = [sys.executable, "-m", "pytest", *sys.argv[2:]]
            return subprocess.run(command, env=os.environ | {URL_VARIABLE: url}).returncode


if __name__ == "__main__":
    sys.exit(main())
