"""dedupe_frame: a data frame or an Arrow table without its near-duplicates."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np

from textsim_db.base.progress_bar import showing
from textsim_db.cluster.keep_rule import Preference
from textsim_db.corpus import Corpus
from textsim_db.dedupe.removals import ANNOTATION, Deduplication, Document, Rule, deduplicate
from textsim_db.errors import ConfigurationError, Misfit, suggest_settings
from textsim_db.files import arrow_frames
from textsim_db.files.arrow_frames import ResultColumns, Results, columns_of
from textsim_db.results import AddReport, Refusal
from textsim_db.results.html import ResultList, facts, output, rows_as_table
from textsim_db.results.shown_values import count, shown
from textsim_db.settings.check_values import check_count, several_items
from textsim_db.settings.corpus_settings import IN_MEMORY, PAIR_SETTINGS, CorpusSettings, Settings
from textsim_db.settings.named_values import Linkage, LinkageName, check_linkage
from textsim_db.text.stop_words import with_lists
from textsim_db.text.storable import is_null, wrong_value


class RemovedRow(NamedTuple):
    """A row that dedupe_frame() removed."""

    key: Any
    """Its value of the column `key`; its place, from 0 on, without this column."""
    kept: Any
    """The same of the row that is kept in its stead; None if a corpus has a match."""
    corpus: str | None
    """The name of the corpus of `against` that has a match, else None."""
    document: str | None
    """The key of this match."""
    similarity: float
    """The exact similarity to the row that is kept, or to the document of the corpus."""


class FrameReport(NamedTuple):
    """The outcome of dedupe_frame()."""

    rows: int
    kept: int
    """The rows that stay."""
    removed: Results[RemovedRow]
    """The rows that were removed, in their order."""
    refused: list[Refusal]
    """The rows that stay because they cannot be compared, by key or place, with the reason."""
    without_words: int
    """The rows that stay because their texts have no words, such as empty texts."""
    similar_scopes: list[tuple[str, ...]]
    """The scopes that differ only in case, spaces or encoding, in groups; each is one by itself."""

    def __repr__(self) -> str:
        removed, refused = count(self.rows - self.kept, "row"), count(len(self.refused), "row")
        counts = f"rows={self.rows}, kept={self.kept}, removed=<{removed}>, refused=<{refused}>"
        counts += f", without_words={self.without_words}"
        return f"FrameReport({counts}, similar_scopes={self.similar_scopes})"

    def _repr_html_(self) -> str:
        similar = sum(map(len, self.similar_scopes))
        counts = [
            ("rows", self.rows),
            ("kept", self.kept),
            ("removed", self.rows - self.kept),
            ("kept, because they cannot be compared", len(self.refused)),
            ("kept, because they have no words", self.without_words),
            ("scopes that differ from others only in case, spaces or encoding", similar),
        ]
        removed = self.removed.rows_as_table(self.rows - self.kept)
        refused = rows_as_table(self.refused, len(self.refused)) if self.refused else ""
        return output(facts(counts), removed, refused)


@suggest_settings(*PAIR_SETTINGS)
def dedupe_frame(
    frame: Any,
    text: str,
    key: str | None = None,
    *,
    keep: str = "first",
    linkage: LinkageName = Linkage.KEPT,
    scope: str | list[str] | None = None,
    against: Corpus | Sequence[Corpus] = (),
    keep_up_to: int = 1,
    annotate: bool = False,
    clusters_of_one: bool = False,
    progress: Callable[[AddReport], None] | bool | None = None,
    **settings: Unpack[Settings],
) -> tuple[Any, FrameReport]:
    """Return a frame without its near-duplicates, and a report.

    The rows that stay have all their columns, and keep their order. With linkage "kept" each row that is
    removed is a verified pair with the row that is kept in its stead. Rows that cannot be compared stay.
    By default it finds every pair whose similarity reaches the threshold. It needs no database; the
    texts are compared in memory.

    Args:
        frame: a data frame of pandas or Polars, or a table with the Arrow PyCapsule interface, which
            needs PyArrow. The result is a data frame of the same kind, or a pyarrow.Table.
        text: the name of the column of texts.
        key: the name of a column of unique values, which name rows in the report; by default their
            places do.
        keep: which row of a cluster stays: "first", "last", "longest", "shortest", "max:COLUMN" or
            "min:COLUMN".
        linkage: how pairs make clusters; see Corpus.clusters().
        scope: the name of the column of scopes, or the names of several columns that make one: only
            rows of one scope are compared.
        against: corpora whose documents stand: a row that matches one of them is removed, too. The
            settings of the first one say what matches. Their judgements are obeyed; `key` names the
            rows that they are about.
        keep_up_to: how many rows of a cluster stay: the one that keep names, and those that are least
            similar to it.
        annotate: return all rows, with five columns more. cluster: the number of the cluster, from 1
            on, null for a row alone. size: the rows of the cluster, with the document of a corpus that
            they match; 1 for a row alone. kept: whether the row would stay. similarity: to the row of
            its cluster that keep names, or to the document of a corpus; otherwise null. kept_key: the
            key of that row as text, or its place without `key`; null for a row alone.
        clusters_of_one: with annotate, a row alone has a cluster of its own, too.
        progress: True shows a bar; a function is called after each batch, with the report of
            Corpus.add_many() so far.
        **settings: fields of CorpusSettings that say which texts match, such as threshold. The default
            of recall is 1.

    Raises:
        ConfigurationError: a column is missing, a key comes twice, or an argument is out of range.

    Examples:
        >>> import polars, textsim_db
        >>> news = polars.DataFrame({
        ...     "id": [1, 2],
        ...     "body": ["The council approved the new budget for schools on Monday.",
        ...              "The council approved the new budget for schools on Monday!"],
        ... })
        >>> unique, report = textsim_db.dedupe_frame(news, text="body", key="id")
        >>> unique["id"].to_list(), list(report.removed)
        ([1], [RemovedRow(key=2, kept=1, corpus=None, document=None, similarity=1.0)])
    """
    expected = (
        f'against is {against!r:.100}; expected a corpus such as db.corpus("news"), or several'
    )
    corpora = [against] if isinstance(against, Corpus) else list(several_items(against, expected))
    if not all(isinstance(corpus, Corpus) for corpus in corpora):
        raise ConfigurationError(expected)
    rule = _rule(keep, linkage, bool(scope), corpora, settings)
    rule = rule._replace(keep_up_to=check_count(keep_up_to, "keep_up_to", 1, 2**63 - 1))
    if not arrow_frames.is_frame(frame):
        raise ConfigurationError(
            f"the frame is of type {type(frame).__name__}; expected a data frame of pandas or Polars, "
            "or a table with the Arrow PyCapsule interface"
        )
    if not arrow_frames.is_data_frame(frame):
        frame = arrow_frames.open_stream(frame).read_all()  # some tables can be read only once
    if annotate:
        _expect_new_columns(frame)
    optional = {"keep": rule.preference.column, "scope": scope, "key": key}
    names: dict[str, str | list[str]] = {"text": text}
    names |= {option: name for option, name in optional.items() if name}
    documents = _Documents(frame, names)
    with showing(progress, "comparing", "rows") as show:
        result = deduplicate(documents, rule, show, corpora)
    filtered = (
        _annotated(frame, result, documents.keys, clusters_of_one)
        if annotate
        else _filtered(frame, result)
    )
    return filtered, _report(frame, key, documents, result)


def _rule(
    keep: str, linkage: str, is_scoped: bool, corpora: Sequence[Corpus], settings: Settings
) -> Rule:
    if corpora and settings:
        raise ConfigurationError(
            f"the corpus has settings already; leave out {', '.join(settings)}"
        )
    chosen = CorpusSettings(**IN_MEMORY | settings | {"scoped": is_scoped})
    config = with_lists(chosen).complete()
    return Rule(Preference.parse(keep), config, check_linkage(linkage)).against(corpora)


class _Documents:
    """The rows of a frame as documents; collects the reasons of texts that cannot be compared."""

    def __init__(self, frame: Any, names: arrow_frames.ColumnNames) -> None:
        self._rows = arrow_frames.frame_rows(frame, names)
        self._options = list(names)
        self._key = names.get("key")
        self._rows_of_keys: dict[Any, int] = {}
        self.keys: list[str | None] = []
        """The key of each row, or its place."""
        self.faults: dict[int, str] = {}

    def __iter__(self) -> Iterator[Document]:
        for row, values in enumerate(self._rows):
            of = dict(zip(self._options, values, strict=True))
            text, value = of["text"], of.get("keep")
            key = self._checked_key(of.get("key"), row)
            self.keys.append(str(row) if key is None else key)
            if isinstance(text, Misfit):
                self.faults[row] = str(wrong_value(text, "text", "str"))
                text = None
            yield Document(text, None if is_null(value) else value, of.get("scope"), key)

    def _checked_key(self, key: Any, row: int) -> str | None:
        """Return the text of a key.

        Raises ConfigurationError if an earlier row has the same key, which would name both rows.
        """
        value = key.value if isinstance(key, Misfit) else key
        if is_null(value):
            return None
        first = self._rows_of_keys.setdefault(str(value), row)
        if first != row:
            raise ConfigurationError(
                f"key={self._key!r} names rows {first} and {row} alike, {shown(str(value)[:40])}; name "
                "a column of unique values, or leave out key="
            )
        return str(value)


def _filtered(frame: Any, result: Deduplication) -> Any:
    mask = result.mask()
    if hasattr(frame, "iloc"):
        return frame[mask]
    if arrow_frames.is_data_frame(frame):
        return frame.filter(mask)
    import pyarrow

    try:
        return frame.filter(pyarrow.array(mask))
    except pyarrow.ArrowNotImplementedError:  # for views of strings, of which it joins slices
        bounds = np.flatnonzero(np.diff(mask, prepend=False, append=False)).reshape(-1, 2)
        slices = [frame[start:end] for start, end in bounds.tolist()]
        return pyarrow.concat_tables(slices or [frame[:0]]).combine_chunks()


def _expect_new_columns(frame: Any) -> None:
    names = frame.columns if arrow_frames.is_data_frame(frame) else frame.column_names
    if taken := [name for name in ANNOTATION if name in names]:
        raise ConfigurationError(
            f'annotate adds a column "{taken[0]}", but the frame has one already; rename it first'
        )


_TYPES = {
    "cluster": ("Int64", "Int64", "int64"),
    "size": ("int64", "Int64", "int64"),
    "kept": ("bool", "Boolean", "bool_"),
    "similarity": ("float64", "Float64", "float64"),
    "kept_key": ("string", "String", "string"),
}
"""The types of the new columns in pandas, Polars and PyArrow."""


def _annotated(frame: Any, result: Deduplication, keys: Sequence[str | None], of_one: bool) -> Any:
    for name, values in result.annotations(keys, of_one).items():
        in_pandas, in_polars, in_arrow = _TYPES[name]
        if hasattr(frame, "iloc"):
            import pandas

            frame = frame.assign(**{name: pandas.array(values, in_pandas)})
        elif arrow_frames.is_data_frame(frame):
            import polars

            frame = frame.with_columns(polars.Series(name, values, getattr(polars, in_polars)))
        else:
            import pyarrow

            frame = frame.append_column(name, pyarrow.array(values, getattr(pyarrow, in_arrow)()))
    return frame


def _report(
    frame: Any, key: str | None, documents: _Documents, result: Deduplication
) -> FrameReport:
    removed = [
        RemovedRow(row, kept, None, None, value)
        if isinstance(kept, int)
        else RemovedRow(row, None, *kept, value)
        for row, kept, value in sorted(result.removals)
    ]
    faults = documents.faults | dict(result.refused)
    names, kind = _names(
        frame, key, {*faults, *(row for each in removed for row in each[:2] if row is not None)}
    )
    named = [each._replace(key=names[each.key], kept=names.get(each.kept)) for each in removed]

    def find() -> Generator[ResultColumns, None, None]:
        yield columns_of(RemovedRow, named)

    return FrameReport(
        result.documents,
        result.documents - len(removed),
        Results(RemovedRow, find, {"key": kind, "kept": kind}),
        ResultList(Refusal(str(names[row]), reason) for row, reason in sorted(faults.items())),
        result.without_words,
        result.similar_scopes,
    )


def _names(frame: Any, key: str | None, rows: set[int]) -> tuple[dict[int, Any], str]:
    """Return what names rows in the report, and its Arrow type: keys, or the places of the rows."""
    places = sorted(rows)
    if key is None:
        return {row: row for row in places}, "int64"
    values = [None if is_null(value) else value for value in _values(frame, key, places)]
    if all(value is None or type(value) is int for value in values):
        return dict(zip(places, values, strict=True)), "int64"
    texts = [None if value is None else str(value) for value in values]
    return dict(zip(places, texts, strict=True)), "string"


def _values(frame: Any, name: str, rows: list[int]) -> list[Any]:
    if hasattr(frame, "iloc"):
        values: list[Any] = frame[name].iloc[rows].to_list()
        return values
    if arrow_frames.is_data_frame(frame):
        return list(frame[name][rows])
    return [frame[name][row].as_py() for row in rows]
