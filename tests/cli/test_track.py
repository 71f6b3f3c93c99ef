"""Tracked clusters, in a shell."""

from __future__ import annotations

import json

from tests.support.commands import NEWS, Textsim, rows
from tests.support.connections import Connection


def test_a_corpus_is_tracked_and_untracked(textsim: Textsim, connection: Connection) -> None:
    textsim("corpus", "create", "news")
    for key in ("a", "b"):
        connection.execute("SELECT textsim.add('news', %s, %s)", [key, NEWS["a"]])
    assert textsim("track", "news", "--linkage", "single").stderr == "compared 2 documents\n"
    query = "SELECT key FROM textsim.members('news') ORDER BY key"
    assert connection.execute(query).fetchall() == [("a",), ("b",)]
    assert "is tracked already" in textsim("track", "news", status=2).stderr
    textsim("untrack", "news")
    assert "is not tracked" in textsim("untrack", "news", status=2).stderr


def test_status_and_doctor_show_how_far_clusters_are_behind(
    textsim: Textsim, connection: Connection
) -> None:
    textsim("corpus", "create", "news")
    textsim("track", "news", "--linkage", "single", "--threshold", "0.9")
    assert "its clusters are up to date" in textsim("doctor").stdout
    for key in ("a", "b", "a"):
        connection.execute("SELECT textsim.add('news', %s, %s)", [key, NEWS[key] + NEWS["d"]])
        connection.execute("SELECT textsim.add('news', %s, %s)", [key, NEWS[key]])
    result = textsim("status")
    assert "tracked   linkage   threshold   outdated   outdated_since" in result.stdout
    assert "news      single       0.9000          2   0." in result.stdout
    doctor = textsim("doctor", status=1).stdout
    assert "no worker is connected: tracked clusters are not updated" in doctor
    assert "2 documents changed since its clusters were updated" in doctor
    assert "textsim worker, or: CALL textsim.update_clusters('news')" in doctor
    connection.execute("UPDATE textsim.pending SET created_at = now() - interval '1 hour'")
    assert "some changes have waited for over a minute" in textsim("status").stderr
    [state] = json.loads(textsim("status", "--format", "jsonl").stdout)["corpora"]
    assert (state["linkage"], state["tracked_threshold"], state["outdated"]) == ("single", 0.9, 2)
    assert state["cluster_lag"] >= 3600
    connection.execute("CALL textsim.index_pending('news')")
    query = "SELECT outdated, outdated_since FROM textsim.status('news')"
    assert connection.execute(query).fetchall() == [(0, None)]
    query = "SELECT key FROM textsim.members('news') ORDER BY key"
    assert connection.execute(query).fetchall() == [("a",), ("b",)]


def test_pending_lists_documents_whose_clusters_cannot_be_updated(
    textsim: Textsim, connection: Connection
) -> None:
    textsim("corpus", "create", "news")
    textsim("track", "news")
    for key in ("a", "b", "c"):
        connection.execute("SELECT textsim.add('news', %s, %s)", [key, NEWS[key]])
    connection.execute("ALTER TABLE textsim.node_1 ADD CHECK (document_id NOT IN (1, 2))")
    textsim("worker", "--once")
    connection.execute("SELECT textsim.remove('news', 'b')")
    failures = [(row["key"], row["error"]) for row in rows(textsim("pending", "--format", "jsonl"))]
    assert [key for key, _ in failures] == ["a", None]
    assert all(error.startswith("its cluster cannot be updated: ") for _, error in failures)
    assert "2 documents set aside" in textsim("doctor", status=1).stdout
    connection.execute("ALTER TABLE textsim.node_1 DROP CONSTRAINT node_1_document_id_check")
    assert "2 documents will be tried again" in textsim("pending", "--retry").stderr
    textsim("worker", "--once")
    query = "SELECT key FROM textsim.members('news') ORDER BY key"
    assert connection.execute(query).fetchall() == [("a",), ("c",)]
