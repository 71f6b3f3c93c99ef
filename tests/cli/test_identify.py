"""textsim identify: the languages of files, folders and records."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from tests.support.commands import Textsim, rows

ENGLISH = "The weather in the north was so bad that nobody went out of the house on Monday. "
GERMAN = "Das Wetter im Norden war am Montag so schlecht, dass niemand aus dem Haus ging. "


def test_files_have_their_languages(textsim: Textsim, tmp_path: Path) -> None:
    texts = {"a.txt": ENGLISH, "b.txt": GERMAN * 2 + ENGLISH, "c.txt": "ok", "d.md": GERMAN}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    expected = [("a.txt", "en"), ("b.txt", "de"), ("b.txt", "en"), ("c.txt", None)]
    result = textsim("identify", str(tmp_path), "--glob", "*.txt", "--json")
    found = rows(result)
    assert [(Path(row["key"]).name, row["language"]) for row in found] == expected
    assert found[1]["confidence"] > found[2]["confidence"] > 0.2
    assert found[3]["confidence"] is None
    assert "3 texts, 1 of them without a language" in result.stderr
    printed = textsim("identify", str(tmp_path), "--format", "csv").stdout
    languages = [line["language"] for line in csv.DictReader(io.StringIO(printed))]
    assert languages == ["en", "de", "en", "", "de"]


def test_records_have_their_languages(textsim: Textsim, tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    records = [{"nr": 1, "body": GERMAN}, {"nr": 2, "body": "a\0b"}, {"nr": 3, "body": ENGLISH}]
    path.write_text("".join(json.dumps(record) + "\n" for record in records) + "{\n")
    result = textsim("identify", str(path), "--key", "nr", "--text", "body", "--json", status=1)
    assert [(row["key"], row["language"]) for row in rows(result)] == [("1", "de"), ("3", "en")]
    assert 'refused: record "2": the text has a NUL' in result.stderr
    assert "line 4" in result.stderr
    assert "2 texts, 0 of them without a language" in result.stderr
    missing = textsim("identify", str(tmp_path / "none.txt"), status=2)
    assert "no text could be read" in missing.stderr
