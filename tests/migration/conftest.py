"""The database and the roles of the tests of rights."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.roles import Stage, copy_of_stage, new_stage
from tests.support.servers import Server


@pytest.fixture(scope="session")
def first_stage(server: Server) -> Iterator[Stage]:
    """The stage that is copied for each test."""
    with new_stage(server) as stage:
        yield stage


@pytest.fixture
def stage(server: Server, first_stage: Stage) -> Iterator[Stage]:
    """A database with the corpus "news", whose schema belongs to a role without superuser rights."""
    with copy_of_stage(server, first_stage) as stage:
        yield stage
