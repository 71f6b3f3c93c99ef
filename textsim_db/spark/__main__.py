"""python -m textsim_db.spark: deduplicate many rows with Spark; spark-submit runs this file too."""

from textsim_db.spark.command import app

if __name__ == "__main__":
    app(prog_name="python -m textsim_db.spark")
