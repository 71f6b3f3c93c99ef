"""More corpora in one transaction than the server has room for locks."""

from __future__ import annotations

import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection, value

pytestmark = pytest.mark.long

CREATE = """
SELECT count(*) FROM generate_series(%s::int, %s) i, LATERAL (SELECT textsim.create_corpus('c' || i)) c
"""
DROP = """
SELECT count(textsim.drop_corpus(c.name)) FROM (SELECT name FROM textsim.corpus LIMIT %s) c
"""


def test_too_many_corpora_in_a_transaction_leave_nothing(
    db: ts.Database, connection: Connection
) -> None:
    with pytest.raises(pg.OutOfMemory):
        connection.execute(CREATE, [1, 2000])
    assert value(connection, "SELECT count(*) FROM textsim.corpus") == 0
    for first in range(0, 1500, 150):
        connection.execute(CREATE, [first, first + 149])
    with pytest.raises(pg.OutOfMemory):
        connection.execute(DROP, [1500])
    for _ in range(10):
        assert connection.execute(DROP, [150]).fetchall() == [(150,)]
    assert list(db.corpora()) == []
