"""A file that a command reads as one text."""

from __future__ import annotations

import os

from textsim_db.cli.messages import print_message
from textsim_db.errors import shown
from textsim_db.files.file_kinds import STDIN, Kind, kind_of


def is_file_name(text: str) -> bool:
    """Return whether a text is the name of an existing file."""
    try:
        return os.path.isfile(text)
    except ValueError:  # a name has no NUL
        return False


def read_one_text(name: str, action: str) -> str:
    """Return the text of a file; if the name is that of a file of records, say what happens to it."""
    from textsim_db.files.read_documents import read_text

    text = read_text(name)
    if name != STDIN and kind_of(name) is not Kind.TEXT:
        print_message(f"{shown(name)} is {action} as one text, not document by document")
    return text
