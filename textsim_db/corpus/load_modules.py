"""load_modules: the modules that add and search, imported before a corpus is created.

An interrupt during an import can fail in many ways, so it must not come after a corpus is stored.
"""

from importlib import import_module


def load_modules() -> None:
    """Import the modules that add and search."""
    for name in ("write.load_batches", "read.clusters", "read.search"):
        import_module(f"textsim_db.{name}")
