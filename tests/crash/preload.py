"""Imports that all processes of the crash tests need; the fork server runs this module once.

It also loads the compiled kernels, which would take half a second in each process.
"""

from __future__ import annotations

import alembic.command  # noqa: F401

import tests.crash.works  # noqa: F401
import textsim_db.corpus.database  # noqa: F401
from textsim_db.settings.corpus_settings import CorpusSettings
from textsim_db.sketch import sketch_texts

sketch_texts.signature("some text", CorpusSettings(num_hashes=16).complete())
