"""sql: the functions of textsim as tables of SQLAlchemy, for statements over your own mapped classes.

    near = sql.neighbours("items", 42)
    select(Item, near.c.similarity).join(near, sql.has_key(Item, near.c.key))

Each function returns a table with typed columns. select() joins it with classes and tables, in Core and
in the ORM, synchronous or asynchronous, on psycopg and asyncpg. If an argument is a column, the table
has rows for each row of the column's table. Nothing is sent here, and no connection is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    ClauseElement,
    ColumnElement,
    DateTime,
    Double,
    Integer,
    SQLColumnExpression,
    String,
    TableValuedAlias,
    Text,
    and_,
    bindparam,
    cast,
    column,
    func,
    inspect,
)
from sqlalchemy.types import TypeEngine

from textsim_db.errors import ConfigurationError
from textsim_db.text.storable import join_key

__all__ = [
    "clusters",
    "distinct_of",
    "duplicates",
    "has_key",
    "key_of",
    "matches",
    "members",
    "nearest",
    "neighbours",
    "pairs",
    "passages",
    "twins_of",
]

TextValue: TypeAlias = str | SQLColumnExpression[Any]
"""A text, or a column or an expression of texts."""
_Type: TypeAlias = TypeEngine[Any] | type[TypeEngine[Any]]
_MATCH: dict[str, _Type] = {"key": Text, "similarity": Double, "differs": ARRAY(Text)}
_ARGUMENTS: dict[str, _Type] = {
    **dict.fromkeys(("k", "max_results", "min_words", "max_documents"), Integer),
    **dict.fromkeys(("keys", "texts", "scopes"), ARRAY(Text)),
    "threshold": Double,
    "guards": Boolean,
    "judgements": Boolean,
}
"""The types of the arguments that are no text."""


def matches(
    corpus: str,
    text: TextValue,
    threshold: float | None = None,
    max_results: int | None = None,
    language: str | None = None,
    scope: TextValue | None = None,
) -> TableValuedAlias:
    """Return the documents that are similar to a text: the columns key, similarity and differs.

    Examples:
        >>> from sqlalchemy import select
        >>> found = matches("news", "Snow fell in the hills.")
        >>> statement = select(found.c.key).where(found.c.similarity > 0.9)
    """
    return _table("matches", _MATCH, locals())


def nearest(
    corpus: str,
    text: TextValue,
    k: int = 10,
    language: str | None = None,
    scope: TextValue | None = None,
) -> TableValuedAlias:
    """Return the k most similar candidates of a text, at any similarity: columns as in matches()."""
    return _table("nearest", _MATCH, locals())


def neighbours(
    corpus: str,
    key: object,
    threshold: float | None = None,
    max_results: int | None = None,
    language: str | None = None,
) -> TableValuedAlias:
    """Return the documents that are similar to a document, without itself: columns as in matches().

    Args:
        corpus: the name of the corpus.
        key: the key of the document; or a value of a key column, such as 42; or key_of(Item), for each
            row of a class.
    """
    key = key_of([key]) if _is_expression(key) else join_key(key)  # type: ignore[arg-type]
    return _table("neighbours", _MATCH, locals())


def distinct_of(
    corpus: str,
    keys: Sequence[str] | SQLColumnExpression[Any],
    max_results: int | None = None,
    threshold: float | None = None,
    guards: bool = True,
    missing: str = "refuse",
) -> TableValuedAlias:
    """Return the documents of keys in order of rank without copies: the columns key, rank and copies.

    Args:
        corpus: the name of the corpus. The other arguments are those of the function in SQL.
        keys: the keys of documents in order of rank; or an array of them, such as
            func.array(select(key_of(Item)).order_by(Item.score).scalar_subquery()).
    """
    return _table("distinct_of", {"key": Text, "rank": Integer, "copies": ARRAY(Text)}, locals())


def pairs(
    corpus: str,
    threshold: float | None = None,
    language: str | None = None,
    scope: TextValue | None = None,
) -> TableValuedAlias:
    """Return all pairs of similar documents: the columns a, b and similarity."""
    return _table("pairs", {"a": Text, "b": Text, "similarity": Double}, locals())


def clusters(
    corpus: str,
    threshold: float | None = None,
    linkage: str = "single",
    language: str | None = None,
    scope: TextValue | None = None,
    judgements: bool = False,
) -> TableValuedAlias:
    """Return the members of clusters: the columns key, cluster, kept and weakest."""
    return _table(
        "clusters", {"key": Text, "cluster": Integer, "kept": Text, "weakest": Double}, locals()
    )


def duplicates(
    corpus: str,
    keep: str = "first",
    threshold: float | None = None,
    linkage: str = "kept",
    language: str | None = None,
    scope: TextValue | None = None,
    judgements: bool = False,
) -> TableValuedAlias:
    """Return the documents to remove: the columns key, kept (which stays instead) and similarity."""
    return _table("duplicates", {"key": Text, "kept": Text, "similarity": Double}, locals())


def members(corpus: str, key: TextValue | None = None) -> TableValuedAlias:
    """Return the members of the clusters of a tracked corpus; key: only of the cluster of a document.

    The columns are key, cluster, representative, similarity (to the representative) and crowded.
    """
    return _table(
        "members",
        {
            "key": Text,
            "cluster": BigInteger,
            "representative": Text,
            "similarity": Double,
            "crowded": Boolean,
        },
        locals(),
    )


def passages(
    corpus: str,
    text: TextValue,
    min_words: int | None = None,
    max_results: int | None = None,
    scope: TextValue | None = None,
    max_documents: int | None = None,
) -> TableValuedAlias:
    """Return the runs of words that a text shares with documents, the longest first.

    The columns are key, words, in_text and in_document.
    """
    return _table(
        "passages",
        {"key": Text, "words": Integer, "in_text": Integer, "in_document": Integer},
        locals(),
    )


def twins_of(
    corpus: str,
    keys: Sequence[str],
    texts: Sequence[str],
    scopes: Sequence[str] | None = None,
) -> TableValuedAlias:
    """Return which texts have a twin in a unique corpus: the columns key, standing and similarity.

    Documents like these texts are locked to the end of the transaction, so insert the other texts in it.
    """
    return _table("twins_of", {"key": Text, "standing": Text, "similarity": Double}, locals())


def has_key(rows: Any, key: SQLColumnExpression[Any]) -> ColumnElement[bool]:
    """Return the condition that a row has the key of a document, for the ON of a join.

    The key is cast to the type of the column, so PostgreSQL looks the row up in its index.

    Args:
        rows: a mapped class, an alias of it, or a table, which stand for their primary key; or a list of
            the key columns of the attached table.
        key: a column with keys, such as `near.c.key`.

    Raises:
        ConfigurationError: `rows` has no primary key.

    Examples:
        >>> from sqlalchemy import column
        >>> near = neighbours("news", 42)
        >>> print(has_key([column("id", Integer)], near.c.key))
        id = CAST(anon_1.key AS INTEGER)
    """
    columns = _key_columns(rows)
    several = len(columns) > 1
    parts = (func.textsim.key_part(key, n) if several else key for n in range(1, len(columns) + 1))
    return and_(
        *(
            # A cast to varchar(n) would cut the key.
            each == (part if isinstance(each.type, String) else cast(part, each.type))
            for each, part in zip(columns, parts, strict=True)
        )
    )


def key_of(rows: Any) -> ColumnElement[str]:
    """Return the key of the document of each row, as an expression.

    Args:
        rows: as for has_key().

    Raises:
        ConfigurationError: `rows` has no primary key.
    """
    texts = [_as_text(each) for each in _key_columns(rows)]
    return texts[0] if len(texts) == 1 else func.textsim.join_key(*texts, type_=Text)


def _key_columns(rows: Any) -> list[Any]:
    if isinstance(rows, list | tuple):
        return [*rows]
    inspected = inspect(rows, raiseerr=False)
    mapper = getattr(inspected, "mapper", None)
    if mapper is not None and not hasattr(rows, "type"):
        return [
            getattr(rows, mapper.get_property_by_column(each).key) for each in mapper.primary_key
        ]
    if columns := [*getattr(rows, "primary_key", ())]:
        return columns
    raise ConfigurationError(
        f"{rows!r:.100} has no primary key; expected a mapped class, a table, or a list of columns"
    )


def _as_text(each: Any) -> ColumnElement[str]:
    """Return a column as the part of a key that attached tables have."""
    if isinstance(each.type, DateTime) and each.type.timezone:
        return cast(func.timezone("UTC", each), Text) + "+00"
    return each if isinstance(each.type, String) else cast(each, Text)


def _is_expression(value: object) -> bool:
    return isinstance(value, ClauseElement) or hasattr(value, "__clause_element__")


def _table(name: str, columns: dict[str, _Type], arguments: dict[str, Any]) -> TableValuedAlias:
    """Return a function as a table; arguments: by name, in their order. NULL needs its type."""
    bound = [
        each if _is_expression(each) else bindparam(None, each, _ARGUMENTS.get(argument, Text))
        for argument, each in arguments.items()
    ]
    table: TableValuedAlias = getattr(func.textsim, name)(*bound).table_valued(
        *(column(each, type_) for each, type_ in columns.items())
    )
    return table
