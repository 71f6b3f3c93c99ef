"""Texts that are designed to take long: seconds from text to sketch by size, and the delay of a cancel.

    python -m benchmarks.hostile_texts [--sizes 1 8 32 128] [--texts NAME...] [--no-sql]

Linear means that four times the size takes four times as long. textsim.normal_form is cancelled at
several moments; "cancelled after" is the longest time from a cancel to its end.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import psycopg

import textsim_db as ts
from textsim_db.db import embedded_server
from textsim_db.errors import DocumentError
from textsim_db.settings import CorpusSettings
from textsim_db.sketch.sketches import sketch_tokens
from textsim_db.text.tokens import Tokens, tokenize
from textsim_db.text.utf8 import MAX_BYTES

TEXTS = {
    "marks of two classes": "\u0301\u0316",
    "30 marks a letter": "a" + "\u0301\u0316" * 15,
    "marks that decompose": "\u0344\u0316",
    "half-width marks": "\uff9e\u0316",
    "letters with three marks": "\u1f82\u0316",
    "Hangul syllables in parts": "\u1100\u1161\u11a8",
    "Hangul vowels": "\u1161",
    "18 characters from one": "\ufdfa",
    "not assigned": "\u0378",
    "Han": "\u6f22\u5b57",
    "Han with marks": "\u6f22\u0316",
    "capitals": "\u00c9",
    "capitals of all scripts": "\u00c9\u0394\u0416\u0531\u2c00",
    "separators": "\u2014",
    "one ASCII word": "a",
    "ASCII words": "a ",
    "ASCII separators": "- ",
}
CANCELS = 5


def text_of(pattern: str, size: int) -> str:
    """Repeat the pattern to a text of at most this number of bytes."""
    return pattern * (size // len(pattern.encode()))


def seconds_of(function: Callable[[], object]) -> str:
    """Return the seconds that a call takes, and its error if it fails."""
    start = time.perf_counter()
    try:
        function()
    except (DocumentError, psycopg.Error) as error:
        return f"{time.perf_counter() - start:.2f}, then: {str(error).splitlines()[0]}"
    return f"{time.perf_counter() - start:.2f}"


def python_seconds(text: str) -> tuple[str, str]:
    """Return the seconds of the normal form, and of the shingles, signature and buckets."""
    data = text.encode()
    made: list[Tokens] = []
    form = seconds_of(lambda: made.append(tokenize([data])))
    if not made:
        return form, ""
    return form, seconds_of(lambda: sketch_tokens(made[0], CorpusSettings("word:3").complete()))


def sql_seconds(connection: psycopg.Connection[object], text: str) -> tuple[str, str]:
    """Return the seconds of the normal form in SQL, and the longest time from a cancel to its end."""
    connection.execute("DROP TABLE IF EXISTS pg_temp.hostile")
    connection.execute("CREATE TEMPORARY TABLE hostile AS SELECT %s::text AS body", [text])
    query = "SELECT length(textsim.normal_form(body)) FROM hostile"
    start = time.perf_counter()
    shown = seconds_of(lambda: connection.execute(query))
    taken = time.perf_counter() - start
    waits = [
        cancelled_after(connection, query, taken * (2 * i + 1) / (2 * CANCELS))
        for i in range(CANCELS)
    ]
    return shown, f"{max(waits):.2f}"


def cancelled_after(connection: psycopg.Connection[object], query: str, delay: float) -> float:
    """Cancel the query after a delay, and return the seconds until it ends."""
    cancelled: list[float] = []

    def cancel() -> None:
        cancelled.append(time.perf_counter())
        connection.cancel()

    timer = threading.Timer(delay, cancel)
    timer.start()
    with suppress(psycopg.Error):
        connection.execute(query.encode())
    end = time.perf_counter()
    timer.cancel()
    timer.join()
    return max(end - cancelled[0], 0.0) if cancelled else 0.0


def main() -> None:
    """Run the benchmark and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 8, 32, 128], help="in MiB")
    parser.add_argument("--texts", nargs="+", choices=TEXTS, default=list(TEXTS))
    parser.add_argument("--no-sql", action="store_true", help="measure Python only")
    given = parser.parse_args()
    python_seconds("é a")
    url = None
    if not given.no_sql:
        url = embedded_server.start()
        ts.install(url)
    print("| text | MiB | Python: normal form | the rest | SQL: normal form | cancelled after |")
    print("|---|---|---|---|---|---|")
    for name in given.texts:
        for size in given.sizes:
            text = text_of(TEXTS[name], min(size * 2**20, MAX_BYTES))
            cells = [name, str(size), *python_seconds(text)]
            if url is not None:
                with ts.connect(url) as db, psycopg.connect(db.url, autocommit=True) as connection:
                    cells += sql_seconds(connection, text)
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
