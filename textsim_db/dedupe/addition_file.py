"""The result of a run that adds documents to a corpus, in a file beside the output.

The documents that stay are added in several transactions. If the process dies in between, the documents
added so far would match themselves in the next run, and would be removed. So the result is written down
before the first document is added. A second run with the same records goes on with it, also after the
end of the first run: a run that was killed just before its exit looks like any other to its caller.
A run with other records is refused. It would replace an output that no run can make again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from textsim_db.dedupe.by_temporary_corpus import Deduplication, Removal, Standing
from textsim_db.errors import InputError, shown
from textsim_db.files.records import replacing


class AdditionFile:
    """The file with the result of the last run that added documents."""

    def __init__(self, path: str, inputs: Sequence[str], arguments: Sequence[object]) -> None:
        """Name the file and the run, which depends on the content of the inputs and on the arguments."""
        self.path = path
        self._run = _digest(inputs, arguments)

    def read(self) -> Deduplication | None:
        """Return the result of an earlier run with the same records and arguments, None without one.

        Raises InputError if the earlier run had others.
        """
        try:
            with open(self.path, "rb") as file:
                content = json.load(file)
        except FileNotFoundError:
            return None
        if content["run"] != self._run:
            raise InputError(
                f"{shown(self.path)} is of a run with other records or options, whose output would be "
                "lost; choose another output, or remove that file"
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
        with replacing(self.path) as file:
            file.write(json.dumps(content).encode())


def _digest(paths: Sequence[str], arguments: Sequence[object]) -> str:
    digest = hashlib.sha256(json.dumps(arguments).encode())
    for path in paths:
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
