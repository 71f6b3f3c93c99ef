"""A Spark session in this process, and small generated documents to compare."""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Documents = list[tuple[str, str]]
_QUICK = {
    # Without the slower compiler a short test takes half the processor time.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    # Of 200 partitions, the default, most would be empty.
    "spark.sql.shuffle.partitions": "2",
}


def missing() -> str | None:
    """Return why Spark cannot run here, or None."""
    home = os.environ.get("JAVA_HOME")
    if not (shutil.which("java") or (home and Path(home, "bin", "java").exists())):
        return "Spark needs Java 17 or newer: install OpenJDK"
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "Spark needs PySpark: pip install '.[spark]'"
    return None


def open_session(folder: Path, master: str = "local[2,2]") -> Iterator[SparkSession]:
    """Lend a session whose driver only this machine reaches; a task that fails runs once more."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {
        **_QUICK,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        # The longest text, of 150 MB, is copied several times; without memory the JVM ends.
        "spark.driver.memory": "2g",
        "spark.local.dir": str(folder),
        "spark.log.level": "OFF",
        "spark.python.daemon.module": "tests.support.spark",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if active := SparkSession.getActiveSession():  # its master allows fewer failures
        active.stop()
    builder = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


def write_defaults(folder: Path) -> None:
    """Write the settings of quick tests for sessions that others open, with this SPARK_CONF_DIR."""
    lines = "".join(f"{name} {value}\n" for name, value in _QUICK.items())
    (folder / "spark-defaults.conf").write_text(lines, "utf-8")


def frame(spark: SparkSession, documents: Documents, partitions: int = 2) -> DataFrame:
    """Return documents as a DataFrame with the columns id and text."""
    return spark.createDataFrame(documents, "id string, text string").repartition(partitions)


def rows(result: DataFrame) -> list[Any]:
    """Return the rows of a result in order; lists become tuples."""

    def as_tuple(value: Any) -> Any:
        return tuple(map(as_tuple, value)) if isinstance(value, list | tuple) else value

    return sorted(map(as_tuple, result.collect()))


def near_duplicates(rng: random.Random, count: int, words: int = 60) -> Documents:
    """Return documents of which every third is a changed copy of an earlier one."""
    texts: list[list[str]] = []
    for number in range(count):
        if number % 3 == 2:
            text = list(rng.choice(texts))
            for place in rng.sample(range(len(text)), rng.randrange(0, len(text) // 10 + 1)):
                text[place] = f"new{rng.randrange(1000)}"
        else:
            numbers = (int(rng.paretovariate(0.6)) for _ in range(rng.randrange(1, words)))
            text = [f"w{number % 5000}" for number in numbers]
        texts.append(text)
    keys = rng.sample(range(10 * count), count)
    return [(f"k{key}", " ".join(text)) for key, text in zip(keys, texts, strict=True)]


if __name__ == "__main__":  # PySpark's daemon, which imports what tasks import before it forks
    import gc

    import pyspark.worker  # noqa: F401
    from pyspark.daemon import manager

    from textsim_db.spark import pair_frames, passage_pairs, stored_frames  # noqa: F401

    # A worker collects garbage after each task, and would visit the objects of all modules.
    gc.collect()
    gc.freeze()
    manager()
