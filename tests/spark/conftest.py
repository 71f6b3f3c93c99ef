"""One Spark session for the tests of a process; each test is skipped if Spark cannot start."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "3",
    "spark.log.level": "ERROR",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two executors' threads in one JVM; a task may fail once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sql = pytest.importorskip("pyspark.sql", reason="PySpark is not installed")
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["PYTHONPATH"] = str(Path(__file__).parents[2])
        builder = sql.SparkSession.builder.master("local[2,2]").config(map=SETTINGS)
        folder = tmp_path_factory.mktemp("spark")
        session = builder.config("spark.sql.warehouse.dir", str(folder)).getOrCreate()
    yield session
    session.stop()
