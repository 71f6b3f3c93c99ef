"""More corpora in one transaction than the server has room for locks."""

from __future__ import annotations

import pytest
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection, value

pytestmark = pytest.mark.long
COMMIT_AFTER = "Commit after every few hundred corpora"


def test_too_many_corpora_in_a_transaction_name_the_way_out(
    db: ts.Database, connection: Connection
) -> None:
    with (
        pytest.raises(pg.OutOfMemory, match="no room for the locks of this transaction") as raised,
        connection.transaction(),
    ):
        for number in range(2000):
            connection.execute("SELECT textsim.create_corpus(%s)", [f"c{number}"])
    assert COMMIT_AFTER in str(raised.value.diag.message_hint)
    assert value(connection, "SELECT count(*) FROM textsim.corpus") == 0
    for part in range(10):
        with connection.transaction():
            for number in range(150):
                connection.execute("SELECT textsim.create_corpus(%s)", [f"c{part}-{number}"])
    drop_all = "SELECT count(textsim.drop_corpus(name)) FROM textsim.corpus"
    with pytest.raises(pg.OutOfMemory) as raised:
        connection.execute(drop_all)
    assert COMMIT_AFTER in str(raised.value.diag.message_hint)
    for _ in range(10):
        some = "(SELECT name FROM textsim.corpus LIMIT 150)"
        connection.execute(f"SELECT count(textsim.drop_corpus(name)) FROM {some} c".encode())
    assert db.corpora() == []
