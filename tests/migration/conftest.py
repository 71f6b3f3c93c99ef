"""The stage on which tests of rights play."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.roles import Stage, new_stage
from tests.support.servers import Server


@pytest.fixture
def stage(server: Server) -> Iterator[Stage]:
    """A database whose schema belongs to a role of its own, with the corpus "news"."""
    with new_stage(server) as stage:
        yield stage
