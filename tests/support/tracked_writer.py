"""Random changes of a tracked corpus."""

from __future__ import annotations

import random
from typing import Any

import textsim_db as ts
from tests.support.connections import Connection
from textsim_db.settings.named_values import Verdict

CORPORA: dict[str, dict[str, Any]] = {
    "bands": {"shingle": "word:1", "threshold": 0.5, "recall": 0.9},
    "exact": {"shingle": "word:2", "threshold": 0.4, "recall": 1.0},
    "chars": {"shingle": "char:2", "threshold": 0.7, "recall": 0.8},
    "scopes": {"shingle": "word:1", "threshold": 0.5, "recall": 0.9, "scoped": True},
    "guards": {"shingle": "word:1", "threshold": 0.5, "recall": 0.9, "guards": "words"}
    | {"guard_words": [f"w{number}" for number in range(0, 200, 5)]},
}


class RandomWriter:
    """Makes random changes of a corpus, in all the ways in which documents are written."""

    def __init__(
        self,
        connection: Connection,
        corpus: ts.Corpus,
        rng: random.Random,
        judges: bool = False,
        keys: int = 60,
    ) -> None:
        self._connection = connection
        self._corpus = corpus
        self._rng = rng
        self._texts: list[str] = []
        self._is_scoped = corpus.config.scoped
        self._judges = judges
        self._keys = keys

    def change(self) -> None:
        """Add, replace or remove some documents, or judge some pairs."""
        rng = self._rng
        if self._judges and rng.random() < 0.3:
            self._judge()
            return
        count = rng.choice((1, 1, 1, 2, 5, 15))
        keys = [f"k{number}" for number in rng.sample(range(self._keys), count)]
        way = rng.random()
        if way < 0.3:
            self._corpus.remove(keys)
        elif way < 0.6:
            self._corpus.add_many(self._document(key) for key in keys)
        else:
            for key in keys:
                _, text, *scope = self._document(key)
                values = [self._corpus.name, key, text, *(scope or [None])]
                self._connection.execute("SELECT textsim.add(%s, %s, %s, %s)", values)
            if way < 0.8:
                # As index_pending does, which would update clusters too.
                arguments = [self._corpus.name, keys]
                self._connection.execute("SELECT textsim._add_words(%s, %s)", arguments)
                self._connection.execute("SELECT textsim._replace_normal_forms(%s, %s)", arguments)

    def _judge(self) -> None:
        rng = self._rng
        pairs = [(pair.a, pair.b) for pair in self._corpus.pairs()]
        for _ in range(rng.choice((1, 1, 3))):
            judged = {(j.a, j.b): j.verdict for j in self._corpus.judgements()}
            if judged and rng.random() < 0.3:
                self._corpus.unjudge(*rng.choice(list(judged)))
                continue
            if pairs and rng.random() < 0.7:
                a, b = rng.choice(pairs)
            else:
                a, b = sorted(f"k{i}" for i in rng.sample(range(self._keys), 2))
            verdict = rng.choice((*Verdict, Verdict.DIFFERENT))
            try:
                self._corpus.judge(a, b, verdict, replaces=judged.get((a, b)))
            except ts.ConfigurationError as error:
                assert "have different scopes" in str(error)  # noqa: PT017

    def _document(self, key: str) -> Any:
        text = self._text()
        return (key, text, self._rng.choice("xy")) if self._is_scoped else (key, text)

    def _text(self) -> str:
        """Return a text of a chain of similar texts, a copy of a text or nearly, or another text."""
        rng = self._rng
        words = [f"w{rng.randrange(200)}" for _ in range(rng.choice((0, 1, 6, 8)))]
        kind = rng.random()
        if kind < 0.4:
            place = rng.randrange(40)
            words = [f"c{number}" for number in range(place, place + 8)]
        elif self._texts and kind < 0.9:
            words = rng.choice(self._texts[-30:]).split()
            for _ in range(rng.choice((0, 1, 1, 2))):
                words[rng.randrange(len(words))] = f"w{rng.randrange(200)}"
        if words:
            self._texts.append(" ".join(words))
        return " ".join(words)
