"""Complete linkage: every two members are linked, and ties do not depend on the number of copies."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np

from textsim_db.cluster.complete_linkage import complete
from textsim_db.cluster.spanning_forest import Links


def _links(pairs: dict[tuple[int, int], float]) -> Links:
    left, right = (np.array(side, np.int64) for side in zip(*pairs, strict=True))
    return Links(left, right, np.array(list(pairs.values()), np.float64))


def test_ties_go_to_the_lowest_numbers() -> None:
    assert [c.tolist() for c, _ in complete(_links({(2, 3): 0.9, (1, 2): 0.9}))] == [[1, 2]]


def test_copies_change_no_cluster_of_other_documents(rng: random.Random) -> None:
    for _ in range(200):
        count = rng.randrange(2, 9)
        # Judgements cut links between equal documents, and make links of similarity 2.
        values = (0, 0.8, 0.9, 1, 1, 2) if rng.random() < 0.5 else (0, 0.8, 0.9)
        drawn = {pair: rng.choice(values) for pair in combinations(range(count), 2)}
        between = {pair: value for pair, value in drawn.items() if value}
        copies = {i: [10 * i + k for k in range(rng.randrange(1, 4))] for i in range(count)}
        pairs = {pair: 1.0 for numbers in copies.values() for pair in combinations(numbers, 2)}
        for (a, b), value in between.items():
            pairs |= {(x, y): value for x in copies[a] for y in copies[b]}
        if not pairs or not between:
            continue
        items = list(pairs.items())
        rng.shuffle(items)
        # Callers show a similarity of 2 as 1.
        clusters = {
            tuple(c.tolist()): min(weakest, 1) for c, weakest in complete(_links(dict(items)))
        }
        expected: dict[tuple[int, ...], float] = {}
        unlinked = set(copies)
        for members, weakest in complete(_links(between)):
            unlinked -= set(members.tolist())
            keys = tuple(sorted(x for i in members.tolist() for x in copies[i]))
            expected[keys] = min(weakest, 1)
        expected |= {tuple(copies[i]): 1.0 for i in unlinked if len(copies[i]) > 1}
        assert clusters == expected
        for cluster in clusters:
            assert all(pair in pairs for pair in combinations(cluster, 2))
