"""The example of listings: the same, variants and doubtful listings, inserted by 16 clients at once."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg

import textsim_db as ts
from tests.support.connections import Connection

EXAMPLE = Path(__file__).parents[2] / "examples" / "listings"
PRODUCTS = ("oak chair with woven seat", "city bike with basket", "brass lamp with glass shade")
TEXT = "This {} is in very good condition, {} and can be picked up in the old town"


def test_a_listing_finds_the_same_its_variants_and_doubtful_ones(
    db: ts.Database, connection: Connection, database_url: str, rng: random.Random
) -> None:
    connection.execute((EXAMPLE / "schema.sql").read_bytes())
    listings = []
    for product in PRODUCTS:
        text = TEXT.format(product, "hardly used,")
        listings += [
            (f"{product} 45 cm", text, 100),
            (f"{product.title()}, 45 cm!", TEXT.format(product, "hardly ever used,"), 105),
            (f"{product} 40 cm", text, 100),
            (f"{product} 45 cm black", text, 100),
            (f"{product} 45 cm", text, 160),
            (f"{product} 45 cm", "Broken, for parts only, no returns accepted", 100),
        ]
    rows = [(number, *listing) for number, listing in enumerate(listings, 1)]

    def insert(row: tuple[object, ...]) -> None:
        with psycopg.connect(database_url) as own:
            own.execute("INSERT INTO listing VALUES (%s, %s, %s, %s)", row)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(insert, rng.sample(rows, len(rows))))
    for first in range(1, len(rows), 6):
        found = connection.execute("SELECT id, what FROM similar_listings(%s)", [first]).fetchall()
        expected = ["same", "variant", "variant", "doubtful", "doubtful"]
        assert dict(found) == {first + place: what for place, what in enumerate(expected, 1)}
    assert db.corpus("title").check() == db.corpus("description").check() == []
