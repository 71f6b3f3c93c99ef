"""The report of textsim dedupe: the clusters, as JSON lines or CSV."""

from __future__ import annotations

import csv
import io
import json
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textsim_db.dedupe.by_temporary_corpus import Deduplication


def write_report(path: str, result: Deduplication, keys: list[str | None]) -> None:
    """Write the clusters to a file ending in .jsonl or .csv; keys has the key of each record."""
    from textsim_db.files.replace_file import replacing

    with replacing(path) as raw:
        # UTF-8 has no lone surrogates, so they are escaped as in JSON.
        file = io.TextIOWrapper(raw, "utf-8", "backslashreplace", newline="")
        (_write_csv if path.endswith(".csv") else _write_jsonl)(file, result, keys)
        file.detach()  # flushes the text, and leaves the file open for replacing()


def _write_jsonl(file: IO[str], result: Deduplication, keys: list[str | None]) -> None:
    def document(number: int) -> dict[str, Any]:
        named = {} if keys[number] is None else {"key": keys[number]}
        return {"record": number + 1, **named}

    for removals in result.clusters():
        removed = [{**document(r.number), "similarity": r.similarity} for r in removals]
        cluster = {"kept": document(removals[0].kept), "removed": removed}
        file.write(json.dumps(cluster, ensure_ascii=False) + "\n")


def _write_csv(file: IO[str], result: Deduplication, keys: list[str | None]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("cluster", "record", "key", "kept_record", "kept_key", "similarity"))
    for number, removals in enumerate(result.clusters(), start=1):
        kept = removals[0].kept
        writer.writerow((number, kept + 1, keys[kept], kept + 1, keys[kept], 1.0))
        for removal in removals:
            member = (number, removal.number + 1, keys[removal.number])
            writer.writerow((*member, kept + 1, keys[kept], removal.similarity))
