"""What the processes that are killed have in common, imported once by the server that forks them.

Compiled kernels are loaded here, which takes half a second otherwise in each of them.
"""

from __future__ import annotations

import alembic.command  # noqa: F401

import tests.crash.works  # noqa: F401
import textsim_db.database  # noqa: F401
from textsim_db.settings import CorpusSettings
from textsim_db.sketch import sketches

sketches.signature("some text", CorpusSettings(num_hashes=16).complete())
