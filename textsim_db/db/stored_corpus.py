"""Corpora as stored: their rows, and the SQL that names their partitions."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, LiteralString

import psycopg
from psycopg import errors as pg
from psycopg import sql
from psycopg.types.json import Jsonb
from sqlalchemy import Engine

from textsim_db.db.engine import autocommit, database_errors, transaction, wait_at_most
from textsim_db.db.retries import repeated
from textsim_db.errors import ConfigurationError, CorpusExists, CorpusNotFound
from textsim_db.lazy import lazy
from textsim_db.settings import CorpusConfig, Shingle

if TYPE_CHECKING:
    from textsim_db.sketch import minhash, sketches
else:
    minhash = lazy("textsim_db.sketch.minhash")
    sketches = lazy("textsim_db.sketch.sketches")

log = logging.getLogger(__name__)

_COLUMNS = (
    "id, name, unit, shingle_length, threshold, recall, num_hashes, bands, rows, seed, recipe, "
    "golden_signature, golden_buckets, coalesce(origin, id), stop_words, language, "
    "stop_words_by_language"
)
_SELECT = f"SELECT {_COLUMNS} FROM textsim.corpus"
_INSERT = """
INSERT INTO textsim.corpus (
    name, unit, shingle_length, threshold, recall, num_hashes, bands, rows, seed, recipe,
    stop_words, language, stop_words_by_language, a, b, golden_signature, golden_buckets
) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (name) DO NOTHING
RETURNING id
"""


_BAND_INDEX = """
/* textsim-db: build the band index of corpus {id} */
CREATE INDEX IF NOT EXISTS {index} ON {band} (bucket, document_id)
"""
_DROP = "/* textsim-db: drop a corpus */ SELECT textsim._drop_corpus(%s)"
_WITHOUT_LIMIT = """
SELECT pg_catalog.set_config(name, '0', true) FROM pg_catalog.pg_settings
WHERE name IN ('statement_timeout', 'transaction_timeout')
"""
_HAS_BAND_INDEX = "SELECT pg_catalog.to_regclass({index_name}) IS NOT NULL"


@dataclass(frozen=True, slots=True)
class StoredCorpus:
    """A corpus as its row says: its number, name and configuration.

    origin: the number that it had when it was created; the number is another one once it is rebuilt.
    is_checked: whether this code was seen to compute its golden signature.
    """

    id: int
    name: str
    config: CorpusConfig
    origin: int
    is_checked: bool = True

    def statement(self, text: LiteralString) -> str:
        """Return SQL with {document} and {band} replaced by the names of the partitions.

        The partitions are named directly: a statement on the parents would lock every corpus.
        What may run for long begins with a comment that has the {id}, for pg_stat_activity.
        """
        return _named(self.id, text)

    def label(self, what: str) -> str:
        """Return the name of a cursor, which is all that pg_stat_activity shows of one."""
        return f"textsim-db: {what} of corpus {self.id}"


@lru_cache(maxsize=1024)
def _named(corpus_id: int, text: LiteralString) -> str:
    return (
        sql.SQL(text)
        .format(
            document=sql.Identifier("textsim", f"document_{corpus_id}"),
            band=sql.Identifier("textsim", f"band_{corpus_id}"),
            document_name=sql.Literal(f"textsim.document_{corpus_id}"),
            band_name=sql.Literal(f"textsim.band_{corpus_id}"),
            id=sql.Literal(corpus_id),
            index=sql.Identifier(f"band_{corpus_id}_bucket"),
            index_name=sql.Literal(f"textsim.band_{corpus_id}_bucket"),
        )
        .as_string(None)
    )


def create(engine: Engine, name: str, config: CorpusConfig) -> StoredCorpus:
    """Store a new corpus with its partitions; raises CorpusExists and ConfigurationError."""
    _check_name(name)
    coefficients = minhash.coefficients(config.seed, config.num_hashes)
    values = [
        name,
        config.shingle.unit,
        config.shingle.n,
        config.threshold,
        config.recall,
        config.num_hashes,
        config.bands,
        config.rows,
        config.seed,
        config.recipe,
        list(config.stop_words),
        config.language,
        Jsonb(dict(config.stop_words_by_language)),
        coefficients.a.tolist(),
        coefficients.b.tolist(),
        sketches.signature(sketches.GOLDEN_TEXT, config).tolist(),
        sketches.buckets(sketches.GOLDEN_TEXT, config).tolist(),
    ]
    with database_errors(), transaction(engine) as connection:
        row = connection.execute(_INSERT, values).fetchone()
        if row is None:
            raise CorpusExists(f'corpus "{name}" exists already')
        connection.execute("SELECT textsim._create_partitions(%s)", [row[0]])
    return StoredCorpus(int(row[0]), name, config, int(row[0]))


def load(engine: Engine, name: str, check_golden: bool = True) -> StoredCorpus:
    """Read a corpus; raises CorpusNotFound, and RecipeError where this code would hash otherwise.

    Without check_golden only the number of the recipe is compared, and no kernel is loaded.
    """
    row = _row(engine, f"{_SELECT} WHERE name = %s", _storable(name))
    if row is None:
        raise CorpusNotFound(name, names(engine))
    return _checked(row, check_golden)


def load_number(engine: Engine, number: int) -> StoredCorpus | None:
    """Read a corpus by its number, None where it is gone; raises RecipeError as load() does."""
    row = _row(engine, f"{_SELECT} WHERE id = %s", number)
    return None if row is None else _checked(row)


def _row(engine: Engine, statement: LiteralString, value: str | int) -> tuple[Any, ...] | None:
    with database_errors(), autocommit(engine) as connection:
        return connection.execute(statement, [value]).fetchone()


def _checked(row: tuple[Any, ...], check_golden: bool = True) -> StoredCorpus:
    corpus = _corpus(row)
    corpus.config.check_recipe(corpus.name)
    if not check_golden:
        return replace(corpus, is_checked=False)
    sketches.check_golden(corpus.name, corpus.config, row[11], row[12])
    return corpus


def drop_band_index(engine: Engine, corpus: StoredCorpus) -> bool:
    """Drop the index on the band rows of an empty corpus; say whether that could be done.

    It cannot where there are documents, for a role that does not own the tables, and while another
    transaction uses them.
    """
    with suppress(psycopg.Error), transaction(engine) as connection:
        wait_at_most(connection, "100ms")
        connection.execute(corpus.statement("LOCK TABLE {band}"))
        row = connection.execute(
            corpus.statement("SELECT EXISTS (SELECT FROM {document})")
        ).fetchone()
        if row == (False,):
            connection.execute(corpus.statement("DROP INDEX textsim.{index}"))
            return True
    return False


def build_band_index(engine: Engine, corpus: StoredCorpus, patience: str | None = None) -> None:
    """Build the index on the band rows, if it is missing.

    A limit on the time of statements is not for this one: without it every search would take longer.
    patience: how long to wait for those who write; LockNotAvailable is raised then.
    """

    def build(_: int) -> None:
        with autocommit(engine) as connection:
            row = connection.execute(corpus.statement(_HAS_BAND_INDEX)).fetchone()
        if row != (False,):
            return
        start = time.monotonic()
        with transaction(engine) as connection:
            connection.execute(_WITHOUT_LIMIT)
            if patience is not None:
                wait_at_most(connection, patience)
            connection.execute("SET LOCAL maintenance_work_mem = '256MB'")
            # Two loads that end at once would both build it, and the second one would fail.
            connection.execute(corpus.statement("LOCK TABLE {band} IN SHARE ROW EXCLUSIVE MODE"))
            connection.execute(corpus.statement(_BAND_INDEX))
        seconds = round(time.monotonic() - start, 3)
        fields = {"corpus": corpus.name, "seconds": seconds}
        log.info("built the band index of corpus %s in %s s", corpus.name, seconds, extra=fields)

    repeated(build)


def names(engine: Engine) -> list[str]:
    """Return the names of all corpora in order."""
    with database_errors(), autocommit(engine) as connection:
        rows = connection.execute('SELECT name FROM textsim.corpus ORDER BY name COLLATE "C"')
        return [row[0] for row in rows]


def drop(engine: Engine, corpus: StoredCorpus, patience: str | None = None) -> None:
    """Remove a corpus with everything in it; raises CorpusNotFound where it is gone already.

    patience: how long to wait for those who use it; DatabaseError is raised then.
    """
    statement = "SELECT id FROM textsim.corpus WHERE id = %s FOR UPDATE"
    if not _drop(engine, statement, corpus.id, patience):
        raise CorpusNotFound(corpus.name)


def drop_named(engine: Engine, name: str, patience: str | None = None) -> None:
    """Remove a corpus by name, whatever its recipe, as drop() does."""
    statement = "SELECT id FROM textsim.corpus WHERE name = %s FOR UPDATE"
    if not _drop(engine, statement, _storable(name), patience):
        raise CorpusNotFound(name, names(engine))


def _drop(engine: Engine, statement: LiteralString, value: int | str, patience: str | None) -> bool:
    with database_errors(), transaction(engine) as connection:
        if patience is not None:
            wait_at_most(connection, patience)
        row = connection.execute(statement, [value]).fetchone()
        if row is None:
            return False
        try:
            connection.execute(_DROP, row)
        except pg.DependentObjectsStillExist as error:
            raise ConfigurationError(error.diag.message_primary or str(error)) from error
    return True


def _corpus(row: tuple[Any, ...]) -> StoredCorpus:
    id_, name, unit, n, *settings = row[:11]
    config = replace(
        CorpusConfig(Shingle(unit, n), *settings),
        stop_words=tuple(row[14]),
        language=row[15],
        stop_words_by_language=tuple(
            (code, tuple(words)) for code, words in sorted(row[16].items())
        ),
    )
    return StoredCorpus(id_, name, config, row[13])


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not name.strip():
        raise ConfigurationError(f"the name of the corpus is {name!r}; expected some text")
    if name != _storable(name) or len(name.encode()) > 200:
        raise ConfigurationError(
            f"the name of the corpus is {name[:40]!r}; expected at most 200 bytes "
            "without NUL characters and lone surrogates"
        )


def _storable(name: str) -> str:
    """Return the name as a parameter that the server takes; one that cannot be stored is not found.

    Raises ConfigurationError where it is not a str.
    """
    if not isinstance(name, str):
        raise ConfigurationError(f"the name of the corpus is {name!r}; expected a str")
    return name.encode("utf-8", "replace").decode().replace("\0", "?")
