"""The result of a deduplication, in a file until its documents are added to a corpus.

The documents that stay are added in several transactions. If the process dies in between, the documents
added so far would match themselves in the next run, and would be removed. So the result is written down
before the first document is added, and the next run goes on with it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress

from textsim_db.dedupe.against_corpora import Standing
from textsim_db.dedupe.by_temporary_corpus import Deduplication, Removal
from textsim_db.errors import InputError, shown
from textsim_db.files.replace_file import replacing


class UnfinishedAddition:
    """The file with the result of a run whose documents are not all added yet."""

    def __init__(self, path: str, input_path: str, arguments: Sequence[object]) -> None:
        """Name the file and the run.

        input_path: the file with the records; arguments: what else decides the result.
        """
        self._path = path
        self._run = _digest(input_path, arguments)

    def read(self) -> Deduplication | None:
        """Return the result of an earlier run that did not end; None if there is none.

        Raises InputError if the file is that of a run with other records or arguments.
        """
        try:
            with open(self._path, "rb") as file:
                content = json.load(file)
        except FileNotFoundError:
            return None
        if content["run"] != self._run:
            raise InputError(
                f"{shown(self._path)} is of an earlier run with other records or options, which ended "
                "before all its records were added; run that command again, or remove the file"
            )
        return Deduplication(
            documents=content["documents"],
            removals=[Removal(*removal) for removal in content["removals"]],
            refused=[(number, reason) for number, reason in content["refused"]],
            standing={int(number): Standing(*s) for number, s in content["standing"].items()},
        )

    def write(self, result: Deduplication) -> None:
        """Write the result, whole or not at all."""
        content = {
            "run": self._run,
            "documents": result.documents,
            "removals": result.removals,
            "refused": result.refused,
            "standing": result.standing,
        }
        with replacing(self._path) as file:
            file.write(json.dumps(content).encode())

    def remove(self) -> None:
        """Remove the file, because all documents are added and the outputs are written."""
        with suppress(FileNotFoundError):
            os.unlink(self._path)


def _digest(path: str, arguments: Sequence[object]) -> str:
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    digest.update(json.dumps(arguments).encode())
    return digest.hexdigest()
