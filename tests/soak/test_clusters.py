"""Writers change a tracked corpus at random, and others update, rebuild and kill meanwhile."""

from __future__ import annotations

import os

import pytest

import textsim_db as ts
from tests.soak import clusters
from textsim_db.settings.named_values import ModeName

STEPS = 200 if float(os.environ.get("TEXTSIM_TEST_SECONDS", "2")) < 60 else 5000


@pytest.mark.more
@pytest.mark.parametrize(("kind", "mode"), clusters.LIVES[::3])
def test_clusters_are_right_after_writers_and_kills(
    db: ts.Database, seed: int, monkeypatch: pytest.MonkeyPatch, kind: str, mode: ModeName
) -> None:
    for name, chance in (("EXPIRE", 0.03), ("REBUILD", 0.01), ("KILL_SESSIONS", 0.1)):
        monkeypatch.setattr(clusters, name, chance)
    monkeypatch.setattr(clusters, "BETWEEN_COMPARISONS", 100)
    life = clusters.Life(db, db.url, f"{seed}", kind, mode, writers=4)
    life.live(STEPS)
    print(f"--seed {seed}: {dict(life.happened)}")
    assert life.happened["changed"] > STEPS / 2
