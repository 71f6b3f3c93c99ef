"""Documents are forgotten while clients write, read and rebuild: every answer stays exact."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import psycopg
from psycopg import errors as pg

import textsim_db as ts
from tests.support.connections import Connection
from tests.support.sources import stored_forms
from tests.support.threads import repeating
from tests.support.waiting import wait_for
from tests.support.workers import running_worker

REBUILDS = int(os.environ.get("TEXTSIM_TEST_REBUILDS", "2"))
WRITERS = int(os.environ.get("TEXTSIM_TEST_WRITERS", "4"))
READERS = max(1, WRITERS // 4)
KEYS = 150
REPLACED = (
    ts.CorpusChanged,
    pg.UndefinedTable,
    pg.UndefinedFunction,
    pg.ObjectNotInPrerequisiteState,
)


def text_of(key: str) -> str:
    """Return the text that a key always has; a word of it is in no other text."""
    number = int(key)
    return f"common words of all texts with some of group{number % 9} and one own{number} word"


def similarity(a: str, b: str) -> float:
    x, y = ({*pairwise(text_of(key).split())} for key in (a, b))
    return len(x & y) / len(x | y)


def again(call: Callable[[], object]) -> None:
    """Call until no rebuild replaces the corpus meanwhile."""
    while True:
        try:
            call()
            return
        except REPLACED:
            pass


def test_answers_are_exact_while_documents_are_forgotten(
    db: ts.Database, connection: Connection, rng: random.Random
) -> None:
    corpus = db.create_corpus("c", shingle="word:2", threshold=0.5, recall=1)
    kept = {str(i) for i in range(1000, 1020)}
    corpus.add_many((key, text_of(key)) for key in kept)
    requests = 0

    def write(own: ts.Corpus, client: Connection) -> None:
        nonlocal requests
        key = str(rng.randrange(KEYS))
        add = "SELECT textsim.add('c', %s, %s)"
        match rng.randrange(4):
            case 0:
                again(lambda: own.add(key, text_of(key)))
            case 1:
                again(lambda: client.execute(add, [key, text_of(key)]))
            case _:
                again(lambda: own.forget([key], later=True))
                requests += 1

    def read(own: ts.Corpus, client: Connection) -> None:
        key = str(rng.choice([rng.randrange(KEYS), 1000 + rng.randrange(20)]))
        answers = {match.key: match.similarity for match in own.query(text_of(key))}
        query = "SELECT key, similarity FROM textsim.matches('c', %s)"
        again(lambda: check(dict(client.execute(query, [text_of(key)]).fetchall()), key))
        check(answers, key)

    def has_requests(number: int) -> bool:
        return requests >= number

    def check(answers: dict[str, float], key: str) -> None:
        assert answers == {other: similarity(key, other) for other in answers}
        near = {other for other in kept if similarity(key, other) >= 0.5}
        assert near <= answers.keys()

    clients = [
        (db.corpus("c"), psycopg.connect(db.url, autocommit=True)) for _ in range(WRITERS + READERS)
    ]
    steps = [
        partial(write if place < WRITERS else read, *client) for place, client in enumerate(clients)
    ]
    with running_worker(db), repeating(*steps):
        for done in range(1, REBUILDS + 1):
            wait_for(partial(has_requests, 100 * done))
            assert not corpus.forget([str(rng.randrange(KEYS))]).has_words
    for _, client in clients:
        client.close()
    db.worker().run(until_idle=True)
    corpus.forget(all_removed=True)
    assert corpus.check() == []
    forms = stored_forms(connection)
    assert forms == {key: text_of(key) for key in forms}
    assert kept <= forms.keys()
    ((number,),) = connection.execute("SELECT id FROM textsim.corpus").fetchall()
    words = connection.execute(f"SELECT word FROM textsim.word_{number}".encode()).fetchall()
    assert {word for (word,) in words} == {
        word for form in forms.values() for word in str(form).split()
    }
