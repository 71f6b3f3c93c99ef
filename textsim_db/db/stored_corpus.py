"""Stored corpora: creates, loads and drops them, and puts the names of their tables into SQL."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, LiteralString

import psycopg
from psycopg import errors as pg, sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb
from psycopg.types.string import TextLoader

from textsim_db.db import statements
from textsim_db.db.engine import (
    autocommit,
    configuration_errors,
    database_errors,
    read_rows,
    transaction,
    wait_at_most,
)
from textsim_db.db.retries import Attempts
from textsim_db.errors import ConfigurationError, CorpusExists, CorpusNotFound, RecipeError
from textsim_db.results import CorpusSummary
from textsim_db.settings.corpus_settings import GUARD_LISTS, NEWER_VERSION, CorpusConfig
from textsim_db.settings.named_values import Guard, Shingle

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from textsim_db.sketch.exact_prefix import CommonValues

log = logging.getLogger(__name__)

_COLUMNS = {
    *(each.name for each in fields(CorpusConfig)),
    *("id", "name", "unit", "shingle_length", "base", "golden_signature", "golden_buckets"),
    *("origin", "created_at", "created_with"),
}
"""The columns of textsim.corpus that this version knows."""


@dataclass(frozen=True, slots=True)
class StoredCorpus:
    """A row of textsim.corpus: the id, name and configuration of a corpus."""

    id: int
    name: str
    config: CorpusConfig
    origin: int
    """The first id of the corpus; a rebuild changes the id, but not the origin."""
    is_checked: bool = True
    """Whether the golden signature was compared when the corpus was loaded."""

    def statement(self, text: LiteralString) -> str:
        """Return SQL with {document}, {band} and other names replaced by those of the corpus.

        {alive} becomes a condition to append: the document d has not expired, and was not rejected.
        {unexpired} is the first half, which writers of a unique corpus have. Both are empty where they
        are not needed. {waits} becomes textsim._waits().
        """
        return named(text, self.id, self.unexpired, self.alive, self._waits)

    @property
    def unexpired(self) -> LiteralString:
        return "" if self.config.keep_for is None else statements.UNEXPIRED

    @property
    def alive(self) -> LiteralString:
        return self.unexpired + (statements.NOT_REJECTED if self.config.is_unique else "")

    @property
    def _waits(self) -> LiteralString:
        if self.config.has_dictionary:
            return statements.WORDS_WAIT
        return (
            statements.NOTHING_WAITS if self.config.language is None else statements.LANGUAGE_WAITS
        )

    def label(self, what: str) -> str:
        """Return the name for a cursor; pg_stat_activity shows only its name."""
        return f"textsim-db: {what} of corpus {self.id}"


@lru_cache(maxsize=1024)
def named(
    text: LiteralString,
    corpus_id: int,
    unexpired: LiteralString = "",
    alive: LiteralString = "",
    waits: LiteralString = statements.NOTHING_WAITS,
) -> str:
    """Return SQL as StoredCorpus.statement() does."""
    return (
        sql.SQL(text)
        .format(
            word=sql.Identifier("textsim", f"word_{corpus_id}"),
            document=sql.Identifier("textsim", f"document_{corpus_id}"),
            band=sql.Identifier("textsim", f"band_{corpus_id}"),
            document_name=sql.Literal(f"textsim.document_{corpus_id}"),
            band_name=sql.Literal(f"textsim.band_{corpus_id}"),
            sequence_name=sql.Literal(f"textsim.document_{corpus_id}_id_seq"),
            id=sql.Literal(corpus_id),
            passage=sql.Identifier("textsim", f"passage_{corpus_id}"),
            passage_name=sql.Literal(f"textsim.passage_{corpus_id}"),
            index=sql.Identifier(f"band_{corpus_id}_bucket"),
            index_name=sql.Literal(f"textsim.band_{corpus_id}_bucket"),
            passage_index=sql.Identifier(f"passage_{corpus_id}_fingerprint"),
            unexpired=sql.SQL(unexpired),
            alive=sql.SQL(alive),
            waits=sql.SQL(waits),
        )
        .as_string(None)
    )


def warn_of_misses(name: str, config: CorpusConfig) -> None:
    """Log a warning if a corpus that gets this configuration finds few of the pairs at its threshold."""
    missed = config.many_missed()
    if missed is not None:
        log.warning('corpus "%s": %s', name, missed, extra={"corpus": name})


def create(engine: Engine, name: str, config: CorpusConfig) -> StoredCorpus:
    """Store a new corpus with its tables; raises CorpusExists and ConfigurationError."""
    check_name(name)
    columns = _columns_of(config) | {"name": name}
    if config.keep_for is not None:
        days, seconds = config.keep_for.days, config.keep_for.seconds
        columns["keep_for"] = f"{days} days {seconds} s {config.keep_for.microseconds} us"
    with database_errors(), transaction(engine) as connection:
        try:
            row = connection.execute(statements.CREATE_CORPUS, [Jsonb(columns)]).fetchone()
        except pg.DuplicateObject:
            raise CorpusExists(f'corpus "{name}" exists already') from None
        assert row is not None
        if config.boilerplate_values:
            values = [row[0], list(config.boilerplate_values)]
            connection.execute(statements.INSERT_BOILERPLATE, values)
        for of_passages, common in enumerate((config.common, config.common_of_passages)):
            if common is not None:
                from textsim_db.db.binary_format import array

                lists = array(common.values), array(common.classes)
                connection.execute(statements.INSERT_COMMON, [row[0], bool(of_passages), *lists])
    return StoredCorpus(int(row[0]), name, config, int(row[0]))


def load(engine: Engine, name: str, check_golden: bool = True) -> StoredCorpus:
    """Load a corpus; raises CorpusNotFound, and RecipeError if this code computes other hashes."""
    return _checked(_named_row(engine, name), check_golden)


def load_unchecked(engine: Engine, name: str) -> StoredCorpus:
    return replace(_corpus(_named_row(engine, name)), is_checked=False)


def _named_row(engine: Engine, name: str) -> dict[str, Any]:
    row = _row(engine, statements.CORPUS_BY_NAME, _storable(name))
    if row is None:
        raise CorpusNotFound(name, names(engine))
    return row


def load_by_id(engine: Engine, corpus_id: int) -> StoredCorpus | None:
    row = _row(engine, statements.CORPUS_BY_ID, corpus_id)
    return None if row is None else _checked(row)


def _row(engine: Engine, statement: LiteralString, value: str | int) -> dict[str, Any] | None:
    with database_errors(), autocommit(engine) as connection:
        cursor = connection.cursor(row_factory=dict_row)
        # It is not used, and psycopg does not read it in every IntervalStyle.
        cursor.adapters.register_loader("interval", TextLoader)
        return cursor.execute(statement, [value]).fetchone()


def _checked(row: dict[str, Any], check_golden: bool = True) -> StoredCorpus:
    corpus = _corpus(row)
    corpus.config.check_recipe(corpus.name)
    if not check_golden:
        return replace(corpus, is_checked=False)
    from textsim_db.sketch import sketch_texts

    golden = (row["golden_signature"], row["golden_buckets"])
    sketch_texts.check_golden(corpus.name, corpus.config, *golden)
    return corpus


def drop_band_index(engine: Engine, corpus: StoredCorpus) -> bool:
    """Drop the index on the band rows of an empty corpus, if it is free; say whether it was."""
    with suppress(psycopg.Error), transaction(engine) as connection:
        wait_at_most(connection, "100ms")
        if corpus.config.passages is not None:
            connection.execute(corpus.statement(statements.LOCK_PASSAGES))
        connection.execute(corpus.statement(statements.LOCK_BANDS))
        row = connection.execute(corpus.statement(statements.HAS_DOCUMENTS)).fetchone()
        if row == (False,):
            connection.execute(corpus.statement(statements.DROP_BAND_INDEX))
            if corpus.config.passages is not None:
                connection.execute(corpus.statement(statements.DROP_PASSAGE_INDEX))
            return True
    return False


def has_band_index(engine: Engine, corpus: StoredCorpus) -> bool:
    return read_rows(engine, corpus.statement(statements.HAS_BAND_INDEX)) == [(True,)]


def build_band_index(engine: Engine, corpus: StoredCorpus, patience: str | None = None) -> None:
    """Build the index on the band rows, if it is missing; patience: how long to wait for writers."""
    for attempt in Attempts():
        with attempt:
            _build_band_index(engine, corpus, patience)


def _build_band_index(engine: Engine, corpus: StoredCorpus, patience: str | None) -> None:
    if has_band_index(engine, corpus):
        return
    start = time.monotonic()
    with transaction(engine) as connection:
        connection.execute(statements.WITHOUT_TIME_LIMITS)
        if patience is not None:
            wait_at_most(connection, patience)
        connection.execute("SET LOCAL maintenance_work_mem = '256MB'")
        # Writers lock the fingerprints before the band rows.
        if corpus.config.passages is not None:
            connection.execute(corpus.statement(statements.LOCK_PASSAGES_AGAINST_WRITERS))
        # Without the lock, two loads that end at the same time would both build the index, and one
        # of them would fail.
        connection.execute(corpus.statement(statements.LOCK_BANDS_AGAINST_WRITERS))
        connection.execute(corpus.statement(statements.BUILD_BAND_INDEX))
        if corpus.config.passages is not None:
            connection.execute(corpus.statement(statements.BUILD_PASSAGE_INDEX))
    seconds = round(time.monotonic() - start, 3)
    fields = {"corpus": corpus.name, "seconds": seconds}
    log.info("built the band index of corpus %s in %s s", corpus.name, seconds, extra=fields)


def alter(engine: Engine, corpus: StoredCorpus, config: CorpusConfig) -> None:
    """Store settings on which no stored row depends."""
    columns = _columns_of(config)
    changed = {name: columns[name] for name in corpus.config.differences(config)}
    pairs = [sql.SQL("{} = %s").format(sql.Identifier(name)) for name in changed]
    update = sql.SQL(statements.ALTER_CORPUS).format(sql.SQL(", ").join(pairs))
    with database_errors(), transaction(engine) as connection:
        if corpus.config.is_unique and not config.is_unique:
            connection.execute(statements.LOCK_UNIQUE, [corpus.id])
            connection.execute(corpus.statement(statements.REMOVE_REJECTED), [corpus.id])
        connection.execute(update, [*changed.values(), corpus.id])
        connection.execute(statements.RECORD_SETTINGS, [[*changed], corpus.id])
        connection.execute(statements.MAKE_FUNCTIONS, [corpus.id])
        connection.execute(statements.MAKE_TRIGGER_FUNCTIONS, [corpus.id])


def names(engine: Engine) -> list[str]:
    return list(summaries(engine))


def summaries(engine: Engine) -> dict[str, CorpusSummary]:
    with database_errors():
        rows = read_rows(engine, statements.CORPORA)
    return {
        name: CorpusSummary(shingle, threshold, recall, tuple(guards), scoped, is_unique)
        for name, shingle, threshold, recall, guards, scoped, is_unique in rows
    }


def drop(engine: Engine, corpus: StoredCorpus, patience: str | None = None) -> None:
    """Drop a corpus with all its documents; patience: how long to wait for transactions that use it."""
    if not _drop(engine, statements.LOCK_CORPUS_BY_ID, corpus.id, patience):
        raise CorpusNotFound(corpus.name)


def drop_named(engine: Engine, name: str, patience: str | None = None) -> None:
    if not _drop(engine, statements.LOCK_CORPUS_BY_NAME, _storable(name), patience):
        raise CorpusNotFound(name, names(engine))


def _drop(engine: Engine, statement: LiteralString, value: int | str, patience: str | None) -> bool:
    with database_errors(), transaction(engine) as connection:
        if patience is not None:
            wait_at_most(connection, patience)
        row = connection.execute(statement, [value]).fetchone()
        if row is None:
            return False
        with configuration_errors(pg.DependentObjectsStillExist):
            connection.execute(statements.DROP_CORPUS, row)
    return True


def _columns_of(config: CorpusConfig) -> dict[str, Any]:
    values = {each.name: getattr(config, each.name) for each in fields(config) if each.compare}
    columns = {n: list(value) if type(value) is tuple else value for n, value in values.items()}
    del columns["shingle"], columns["boilerplate_values"]
    return columns | {
        "unit": config.shingle.unit,
        "shingle_length": config.shingle.n,
        "stop_words_by_language": dict(config.stop_words_by_language),
    }


def _refuse_unknown(row: dict[str, Any]) -> None:
    """Raise RecipeError if a newer version gave the corpus a setting that would be ignored here.

    The default of each new setting is NULL, 0, false or empty, so that a corpus without it goes on.
    """
    unknown = [f'the setting "{n}"' for n, v in row["stored"].items() if n not in _COLUMNS and v]
    unknown += [f'the guard "{kind}"' for kind in row["guards"] if kind not in list(Guard)]
    if unknown:
        raise RecipeError(
            f'corpus "{row["name"]}" has {" and ".join(unknown)}, which this version of textsim-db does '
            f"not know; what to do: {NEWER_VERSION}"
        )


def _corpus(row: dict[str, Any]) -> StoredCorpus:
    _refuse_unknown(row)
    values = {each.name: row[each.name] for each in fields(CorpusConfig) if each.name in row}
    columns: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }
    lists = sorted(row["stop_words_by_language"].items())
    microseconds = row["microseconds_kept"]
    columns |= {
        "shingle": Shingle(row["unit"], row["shingle_length"]),
        "stop_words_by_language": tuple((code, tuple(words)) for code, words in lists),
        "keep_for": None if microseconds is None else timedelta(microseconds=microseconds),
        "guard_lists": GUARD_LISTS if row["guard_lists"] is None else row["guard_lists"],
    }
    config = CorpusConfig(**columns)
    config = replace(
        config, common=_common(row["common"]), common_of_passages=_common(row["common_of_passages"])
    )
    return StoredCorpus(row["id"], row["name"], config, row["first_id"])


def _common(lists: list[bytes] | None) -> CommonValues | None:
    if lists is None:
        return None
    from textsim_db.db.binary_format import load_int2_arrays, load_int8_array
    from textsim_db.sketch.exact_prefix import common_values

    values, classes = lists
    return common_values(load_int8_array(values), load_int2_arrays([classes])[0])


def check_name(name: str) -> None:
    if not isinstance(name, str) or not name.strip():
        raise ConfigurationError(f"the name of the corpus is {name!r}; expected some text")
    if name != _storable(name) or len(name.encode()) > 200:
        raise ConfigurationError(
            f"the name of the corpus is {name[:40]!r}; expected at most 200 bytes "
            "without NUL characters and lone surrogates"
        )


def _storable(name: str) -> str:
    """Return the name as the server accepts it; a name that must be changed names no corpus."""
    if not isinstance(name, str):
        raise ConfigurationError(f"the name of the corpus is {name!r}; expected a str")
    return name.encode("utf-8", "replace").decode().replace("\0", "?")
