"""Three designs that remember each thing once for each tenant, side by side.

    python -m benchmarks.remember [--requests 20000] [--words 50] [--rounds 5] [--record]

16 clients keep the same stream of texts in each design: a corpus for each tenant; one corpus without
scopes, with a lock for each tenant and a search before each write; and one scoped corpus. The designs
take turns, a part of the stream each. Every fifth request repeats the request before it, with up to two
words changed, so two clients often bring twins at once.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import psutil
import psycopg

from benchmarks.generate import documents, vocabulary
from benchmarks.harness import (
    Bench,
    Figures,
    by_clients,
    compare,
    in_turns,
    medians,
)

CLIENTS = 16
TENANTS = 50
THINGS_PER_REQUEST = 0.02
"""With 50 tenants, each tenant meets each thing once on average."""
SETTINGS: dict[str, Any] = {"threshold": 0.6, "recall": 1}
LABELS = {
    "rate": "requests/s",
    "p50_ms": "request, median ms",
    "p99_ms": "&emsp;p99 ms",
    "kept": "memories kept",
    "twins": "twins left within a tenant",
    "bytes": "corpora, bytes a memory",
    "connection_mb": "own memory of a connection, MB",
}
TABLE = """
CREATE TABLE {name} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant text, body text, seen int DEFAULT 1)
"""
BY_CONSTRAINT = """
CREATE FUNCTION remember_{name}(tenant text, body text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    new_id text;
    detail text;
BEGIN
    LOOP
        BEGIN
            INSERT INTO {name} (tenant, body) VALUES (tenant, body) RETURNING id INTO new_id;
            PERFORM textsim.add({corpus}, new_id, body, {scope});
            RETURN;
        EXCEPTION WHEN unique_violation THEN
            GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
        END;
        UPDATE {name} SET seen = seen + 1
        WHERE id = substring(detail FROM '^Key \\((\\d+)\\) has similarity')::bigint;
        EXIT WHEN FOUND;
    END LOOP;
END $$
"""
BY_LOCK_AND_SEARCH = """
CREATE FUNCTION remember_{name}(of_tenant text, new_body text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    kept bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext(of_tenant));
    SELECT m.id INTO kept
    FROM textsim.matches('{name}', new_body) s JOIN {name} m ON m.id = s.key::bigint
    WHERE m.tenant = of_tenant
    ORDER BY s.similarity DESC LIMIT 1;
    IF FOUND THEN
        UPDATE {name} SET seen = seen + 1 WHERE id = kept;
    ELSE
        INSERT INTO {name} (tenant, body) VALUES (of_tenant, new_body) RETURNING id INTO kept;
        PERFORM textsim.add('{name}', kept::text, new_body);
    END IF;
END $$
"""
TWINS = """
SELECT count(*) FROM textsim.pairs(%s) p
JOIN {name} a ON a.id = p.a::bigint JOIN {name} b ON b.id = p.b::bigint WHERE a.tenant = b.tenant
"""


class Request(NamedTuple):
    """A text that a tenant brings."""

    tenant: str
    body: str


class Design:
    """A way to remember: its table, its corpora, its function, and a connection for each client."""

    def __init__(
        self, bench: Bench, name: str, function: str, corpora: list[str], **settings: Any
    ) -> None:
        self.bench, self.name, self.corpora = bench, name, corpora
        for corpus in corpora:
            bench.db.create_corpus(corpus, **SETTINGS, **settings)
        own = {"corpus": "tenant", "scope": "NULL"}
        if settings.get("scoped"):
            own = {"corpus": f"'{name}'", "scope": "tenant"}
        for statement in (TABLE, function):
            filled = statement.format(name=name, **own)
            bench.connection.execute(filled.encode())
        self._connections = [psycopg.connect(bench.db.url, autocommit=True) for _ in range(CLIENTS)]

    def run(self, requests: list[Request]) -> Figures:
        """Let the clients take the requests from one queue."""
        statement = f"SELECT remember_{self.name}(%s, %s)".encode()
        clients = [partial(own.execute, statement, prepare=True) for own in self._connections]
        return by_clients(clients, requests)

    def result(self, rounds: list[Figures]) -> Figures:
        """Return the figures of all rounds, and close the connections."""
        pids = [connection.info.backend_pid for connection in self._connections]
        own = statistics.mean(psutil.Process(pid).memory_full_info().uss for pid in pids)
        for connection in self._connections:
            connection.close()
        kept = self.bench.number(f"SELECT count(*) FROM {self.name}")
        twins = TWINS.format(name=self.name)
        return medians(rounds) | {
            "kept": kept,
            "twins": sum(self.bench.number(twins, corpus) for corpus in self.corpora),
            "bytes": sum(map(self.bench.stored_bytes, self.corpora)) / kept,
            "connection_mb": own / 2**20,
        }


def stream(count: int, words: int) -> Iterator[Request]:
    """Yield requests: random tenants bring random things, each with up to two words changed."""
    rng = random.Random(1)
    things = [text for _, text in documents(int(count * THINGS_PER_REQUEST), words, planted=0)]
    others = vocabulary()
    tenant = thing = ""
    for number in range(count):
        if number % 5 < 4:
            tenant, thing = f"tenant{rng.randrange(TENANTS)}", rng.choice(things)
        body = thing.split()
        for _ in range(rng.randrange(3)):
            body[rng.randrange(words)] = rng.choice(others)
        yield Request(tenant, " ".join(body))


def measure(bench: Bench, count: int, words: int, rounds: int) -> dict[str, Figures]:
    """Return the figures of each design."""
    tenants = [f"tenant{number}" for number in range(TENANTS)]
    designs = {
        "a corpus for each tenant": Design(bench, "many", BY_CONSTRAINT, tenants, is_unique=True),
        "one corpus, locks, search and filter": Design(
            bench, "locked", BY_LOCK_AND_SEARCH, ["locked"]
        ),
        "one scoped corpus": Design(
            bench, "scoped", BY_CONSTRAINT, ["scoped"], is_unique=True, scoped=True
        ),
    }
    requests = list(stream(count, words))
    size = -(-count // rounds)

    def part(number: int) -> list[Request]:
        return requests[number * size : (number + 1) * size]

    sides = {
        name: lambda number, design=design: design.run(part(number))
        for name, design in designs.items()
    }
    results = in_turns(sides, rounds)
    return {name: design.result(results[name]) for name, design in designs.items()}


if __name__ == "__main__":
    corner = f"{{requests:,}} requests, {TENANTS} tenants, {CLIENTS} clients"
    compare("remember", __doc__, measure, LABELS, corner, requests=20_000, words=50, rounds=5)
