"""The Python API from end to end: names, shapes and meaning."""

from __future__ import annotations

import textsim_db as ts


def test_add_and_query(db: ts.Database) -> None:
    corpus = db.create_corpus("news")
    report = corpus.add_many([("a", "one two three four"), ("b", "nothing of the kind")])
    assert (report.added, report.replaced, report.unchanged, report.refused) == (2, 0, 0, [])
    assert corpus.query("one two three four") == [ts.Match("a", 1.0, 1.0)]
