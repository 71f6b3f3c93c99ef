"""The stage on which tests of rights play."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.roles import Stage, copy_of_stage, new_stage
from tests.support.servers import Server


@pytest.fixture(scope="session")
def first_stage(server: Server) -> Iterator[Stage]:
    """A stage that tests get copies of."""
    with new_stage(server) as stage:
        yield stage


@pytest.fixture
def stage(server: Server, first_stage: Stage) -> Iterator[Stage]:
    """A database whose schema belongs to a role of its own, with the corpus "news"."""
    with copy_of_stage(server, first_stage) as stage:
        yield stage
