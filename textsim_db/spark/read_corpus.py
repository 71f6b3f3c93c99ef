"""Reads the documents of a corpus of PostgreSQL as a DataFrame; tasks read ranges of ids."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from textsim_db.check_values import check_count
from textsim_db.database import connect
from textsim_db.db import stored_corpus
from textsim_db.db.engine import database_errors, read_rows
from textsim_db.read.statements import HIGHEST_ID
from textsim_db.spark.read_task import DOCUMENTS, task_of_ranges
from textsim_db.spark.task_store import Target

IDS_OF_PARTITION = 50_000
"""Ids of a partition. More need fewer tasks, and a task that fails repeats more."""
MAX_PARTITIONS = 100_000


def read(
    spark: SparkSession, url: str | None, corpus: str, partitions: int | None = None
) -> DataFrame:
    """Return the documents of a corpus as a DataFrame, which executors read from the server.

    The columns are `key`, `language` (null if the corpus does not identify languages), `scope` (null if
    the corpus is not scoped), `shingle_count`, and `normal_form`, the words of the text joined by
    spaces. The functions of this package accept the normal form as a text.

    Spark reads when it computes the DataFrame, each time again. A document that changes meanwhile is in
    the old or the new state. So cache the DataFrame, or save it as a table, if others write to the
    corpus.

    Args:
        spark: the session.
        url: the address of the database, as in write().
        corpus: the name of the corpus.
        partitions: the number of partitions, ranges of ids of the same length. By default one for
            50,000 ids.

    Raises:
        CorpusNotFound: there is no corpus of this name.
        ConfigurationError: an argument is out of range.
    """
    with connect(url) as database, database_errors():
        stored = stored_corpus.load(database.engine, corpus)
        ((highest,),) = read_rows(database.engine, stored.statement(HIGHEST_ID))
        address = database.url
    count = min(-(-highest // IDS_OF_PARTITION) or 1, MAX_PARTITIONS)
    if partitions is not None:
        count = check_count(partitions, "partitions", 1, MAX_PARTITIONS)
    task = task_of_ranges(Target(address, corpus), stored.id, -(-highest // count))
    return spark.range(0, count, 1, count).mapInArrow(task, DOCUMENTS)
