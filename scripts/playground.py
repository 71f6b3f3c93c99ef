"""A hook of MkDocs: the files that docs/playground.md loads, PGlite and a snapshot of our schema in it.

PGlite is PostgreSQL as WebAssembly. npm takes the version of examples/javascript/package-lock.json, and
compares its hash. If npm is missing or reaches no registry, the site has no playground, and a line on
standard error says why.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from textsim_db.db import schema

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "examples" / "javascript" / "package-lock.json"
SNAPSHOT = Path(__file__).with_name("playground_snapshot.mjs")
BUILT = ROOT / ".playground"
SECONDS = 60.0
"""After this time npm counts as one that reaches no registry."""
PARTS = ("index.js", "chunk-*.js", "*.wasm", "pglite.data")
"""The files of PGlite that a browser loads; the others are extensions of PostgreSQL, or for node."""
PAGE = "playground.md"


class LeftOut(Exception):
    """The playground cannot be built on this machine."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files to the site; MkDocs calls this."""
    try:
        folder = build()
    except LeftOut as reason:
        print(f"the site has no playground: {reason}", file=sys.stderr)
        return files
    for path in folder.rglob("*.*"):
        name = f"playground/{path.relative_to(folder).as_posix()}"
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Say on the page that its files were left out; MkDocs calls this."""
    if page.file.src_uri != PAGE or files.get_file_from_path("playground/snapshot.bin"):
        return markdown
    return "# Playground\n\nThis copy of the docs was built without npm, so it has no playground.\n"


def build() -> Path:
    """Return the folder with the files, which are built anew if the schema or PGlite has changed.

    Raises LeftOut if npm or its registry is missing.
    """
    script = schema.script()
    parts = (script.encode(), LOCK.read_bytes(), SNAPSHOT.read_bytes())
    folder = BUILT / hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
    if folder.exists():
        return folder
    BUILT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILT) as name:
        packages, built = Path(name, "packages"), Path(name, "built")
        dist = install(packages) / "@electric-sql" / "pglite" / "dist"
        (built / "pglite").mkdir(parents=True)
        for part in PARTS:
            for path in dist.glob(part):
                shutil.copy(path, built / "pglite")
        shutil.copy(dist.parent / "LICENSE", built / "pglite" / "LICENSE.txt")
        command = ["node", str(SNAPSHOT), str(dist), str(built / "snapshot.bin")]
        if status := subprocess.run(command, input=script, text=True, check=False).returncode:
            raise SystemExit(status)
        if not folder.exists():  # another build at the same time may be done
            for outdated in BUILT.glob("[0-9a-f]*"):
                shutil.rmtree(outdated)
            built.rename(folder)
    return folder


def install(folder: Path) -> Path:
    """Install the packages of the example in JavaScript; return their folder, node_modules.

    Raises LeftOut if npm or its registry is missing, and SystemExit if a package has another hash.
    """
    folder.mkdir()
    for name in ("package.json", LOCK.name):
        shutil.copy(LOCK.with_name(name), folder)
    if not shutil.which("node") or not (npm := shutil.which("npm")):
        raise LeftOut("node or npm is not installed")
    options = ("--ignore-scripts", "--prefer-offline", "--no-audit")
    retries = ("--fetch-retries=1", "--fetch-retry-mintimeout=1000")
    command = [npm, "ci", *options, *retries]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        raise LeftOut(f"npm reached no registry in {SECONDS:.0f} s") from None
    if "EINTEGRITY" in done.stderr:
        raise SystemExit(f"error: a package has another hash than in {LOCK.name}\n{done.stderr}")
    if done.returncode:
        raise LeftOut(f"npm installs no packages\n{done.stderr}")
    return folder / "node_modules"
