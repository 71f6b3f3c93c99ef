"""The scene of tests that take steps."""

import pytest

import textsim_db as ts
from tests.support.clients import Clients
from tests.support.connections import Connection
from tests.support.interleaving import Scene


@pytest.fixture
def corpus(db: ts.Database) -> ts.Corpus:
    """An empty corpus whose documents have band rows and fingerprints."""
    return db.create_corpus("c", shingle="word:2", threshold=0.7, num_hashes=16, passages=4)


@pytest.fixture
def scene(
    db: ts.Database, corpus: ts.Corpus, connection: Connection, make_client: Clients
) -> Scene:
    return Scene(db, corpus, connection, make_client)
