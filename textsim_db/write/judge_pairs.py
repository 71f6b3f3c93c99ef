"""Records, removes and lists judgements: what people say of pairs of documents."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from psycopg import errors as pg

from textsim_db.db.engine import read_rows, transaction
from textsim_db.db.retries import Attempts
from textsim_db.db.store import Store
from textsim_db.errors import ConfigurationError, JudgementExists, TextsimError
from textsim_db.files.arrow_frames import ResultColumns, columns_of
from textsim_db.results import DoubtfulPair, Judgement
from textsim_db.text.storable import stored_key, stored_note
from textsim_db.write import statements

TextHashes = tuple[str | None, str | None]
"""The hashes of the normal forms of two documents; None: any text."""


class GivenJudgement(NamedTuple):
    a: object
    b: object
    verdict: str
    """The verdict: same, different or unsure."""
    note: str | None = None
    judge: str | None = None
    confidence: float | None = None
    hashes: TextHashes | None = None
    """Those of the texts that were judged; None: the present ones."""
    replaces: str | None = None
    """The verdict of the stored judgement that it replaces."""


def judge(
    store: Store,
    judgements: Sequence[GivenJudgement],
    replace: bool = False,
    place_of: Callable[[int], str] | None = None,
) -> int:
    """Record judgements in one transaction, and return how many were not stored before."""
    name = store.corpus.name
    # All sessions lock pairs in one order.
    order = sorted(range(len(judgements)), key=lambda i: sorted(map(str, judgements[i][:2])))
    for attempt in Attempts():
        with attempt, transaction(store.engine) as connection:
            stored: dict[frozenset[str], str] = {}
            if replace:
                rows = connection.execute(statements.JUDGEMENTS, [name]).fetchall()
                stored = {frozenset((a, b)): verdict for a, b, verdict, *_ in rows}
            written = 0
            for number in order:
                with _refusals(f"{place_of(number)}: " if place_of else ""):
                    given = judgements[number]
                    keys = stored_key(given.a), stored_key(given.b)
                    note = None if given.note is None else stored_note(given.note)
                    judge = None if given.judge is None else stored_note(given.judge, "source")
                    replaces = stored.get(frozenset(keys)) if replace else given.replaces
                    hashes = None if given.hashes is None else [*given.hashes]
                    stated = given.verdict, note, replaces, judge, given.confidence, hashes
                    values = [name, *keys, *stated]
                    row = connection.execute(statements.JUDGE, values).fetchone()
                    written += row == (True,)
    return written


def unjudge(store: Store, a: object, b: object) -> bool:
    with _refusals(""), transaction(store.engine) as connection:
        keys = stored_key(a), stored_key(b)
        row = connection.execute(statements.UNJUDGE, [store.corpus.name, *keys]).fetchone()
    return row == (True,)


@contextmanager
def _refusals(place: str) -> Iterator[None]:
    """Turn the reasons for which the server refuses a judgement into errors that name its place."""
    try:
        yield
    except TextsimError as error:
        raise type(error)(place + str(error)) from error
    except pg.InvalidParameterValue as error:
        raise ConfigurationError(place + str(error.diag.message_primary)) from error
    except pg.RestrictViolation as error:
        raise JudgementExists(place + str(error.diag.message_primary)) from error


def judgements(store: Store) -> Generator[ResultColumns, None, None]:
    # A binary time is read whatever the DateStyle is.
    rows = read_rows(store.engine, statements.JUDGEMENTS, [store.corpus.name], binary=True)
    yield columns_of(Judgement, rows)


def doubtful(
    store: Store, scope: str | None, most: int | None, siblings: bool
) -> Generator[ResultColumns, None, None]:
    parameters = [store.corpus.name, scope, most, siblings]
    rows = read_rows(store.engine, statements.DOUBTFUL, parameters)
    yield columns_of(DoubtfulPair, [(*pair, tuple(differs)) for *pair, differs in rows])
