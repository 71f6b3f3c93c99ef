"""textsim index and remove: added, refused and counted documents."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pandas
import psycopg
import pytest

import textsim_db as ts
from tests.support.commands import NEWS, Textsim, rows
from tests.support.connections import Connection
from tests.support.records import KINDS
from tests.support.sources import index_all_pending


def test_unknown_corpus(news: Textsim) -> None:
    result = news("index", "newz", "news.jsonl", status=2)
    assert result.stderr == (
        'error: corpus "newz" does not exist; did you mean "news"?\n'
        "to create it, add --create, or run: textsim corpus create newz\n"
    )
    swapped = news("index", "news.jsonl", "news", status=2)
    assert swapped.stderr == (
        'error: corpus "news.jsonl" does not exist\n'
        "this is the name of a file; the name of the corpus comes first\n"
    )
    assert "name a file, a folder" in news("index", "news", status=2).stderr
    both = news("index", "news", "news.jsonl", "--query", "SELECT", status=2).stderr
    assert "it reads no files" in both


def test_create_with_settings(news: Textsim) -> None:
    news("index", "new", "news.jsonl", "--create", "--threshold", "0.6")
    (row,) = rows(news("corpus", "list", "new", "--format", "jsonl"))
    assert (row["threshold"], row["documents"]) == (0.6, 4)
    news("index", "new", "news.jsonl", "--create")
    result = news("index", "new", "news.jsonl", "--create", "--threshold", "0.7", status=2)
    assert result.stderr == (
        'error: corpus "new" exists with other settings: threshold is 0.6 there, not 0.7; '
        "use another name, or change the settings with textsim rebuild\n"
    )
    result = news("index", "new", "news.jsonl", "--threshold", "0.7", status=2)
    assert "give --create" in result.stderr
    result = news("index", "new", "news.jsonl", "--kind", "xml", status=2)
    assert "'--kind': \"xml\" is not one of auto, jsonl" in result.stderr


def test_a_unique_corpus_leaves_twins_out(news: Textsim) -> None:
    text = "the quick brown fox jumps over the lazy dog and runs into the dark green forest"
    lines = [json.dumps({"id": i, "text": f"{text} {'x' * (i > 0)}"}) for i in range(30)]
    Path("twins.jsonl").write_text("\n".join(lines))
    result = news("index", "new", "twins.jsonl", "--create", "--unique", "--recall", "1", status=1)
    first, *others = result.stderr.splitlines()
    assert first.startswith("1 added, 0 replaced, 0 unchanged, 29 left out; ")
    assert others[0] == 'left out: document "1" matches "0" with similarity 0.933'
    assert (len(others), others[-1]) == (21, "... and 9 more")
    result = news("index", "new", "twins.jsonl", status=1)
    assert result.stderr.startswith("0 added, 0 replaced, 1 unchanged, 29 left out; ")
    assert "unique yes" in " ".join(news("corpus", "list", "new").stdout.split())


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (["none.jsonl"], "refused: none.jsonl: cannot be read: No such file or directory\n"),
        (
            ["news.jsonl", "--key", "k"],
            "refused: news.jsonl, line 1; news.jsonl, line 2; news.jsonl, line 3 and 1 more: there is "
            'no member "k"; found "id", "text": name another with --key\n',
        ),
        (["empty.jsonl"], ""),
    ],
)
def test_a_failed_command_leaves_no_corpus(mistake: list[str], message: str, news: Textsim) -> None:
    Path("empty.jsonl").touch()
    command = ["index", "new", "--create"]
    result = news(*command, *mistake, status=2)
    error = 'error: the corpus "new" was not created, because the input has no document\n'
    assert result.stderr.endswith(message + error)
    news(*command, "news.jsonl", "--threshold", "0.6")
    (row,) = rows(news("corpus", "list", "new", "--format", "jsonl"))
    assert (row["threshold"], row["documents"]) == (0.6, 4)


def test_a_wrong_setting_is_reported_before_any_file_is_read(textsim: Textsim) -> None:
    result = textsim("index", "c", "none", "--create", "--threshold", "2", status=2)
    assert result.stderr == "error: threshold is 2.0; expected above 0, at most 1\n"


def test_refused_documents_are_listed_and_other_documents_stored(textsim: Textsim) -> None:
    lines = ['{"id": "k", "text": "good"}', "{", r'{"id": "n", "text": "a\u0000b"}']
    lines += [r'{"id": "s", "text": "\ud800"}', json.dumps({"id": "k" * 1001, "text": "t"})]
    Path("a.jsonl").write_text("\n".join(lines))
    result = textsim("index", "c", "a.jsonl", "missing", "--create", status=1)
    summary, *refused = result.stderr.splitlines()
    assert summary.startswith("1 added, 0 replaced, 0 unchanged, 5 refused; ")
    assert refused[:4] == [
        "refused: a.jsonl, line 2: malformed JSON at character 2: "
        "Expecting property name enclosed in double quotes",
        "refused: missing: cannot be read: No such file or directory",
        'refused: document "n": the text has a NUL character at character 2, '
        "which PostgreSQL cannot store; remove it",
        'refused: document "s": the text has a lone surrogate U+D800 at character 1, '
        "which PostgreSQL cannot store; remove it",
    ]
    assert refused[4].endswith("the key is 1001 bytes long; at most 1000 are possible")
    assert len(refused) == 5


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_a_key_of_several_columns(textsim: Textsim, db: ts.Database, kind: str) -> None:
    rows_ = [{"id": "a/b", "text": "one", "score": 1}, {"id": "a/b", "text": "two", "score": 2}]
    Path(f"in.{kind}").write_bytes(KINDS[kind](rows_))
    command = ("index", "c", f"in.{kind}", "--create", "--key")
    assert '"nr"' in textsim(*command, "id", "--key", "nr", status=2).stderr
    textsim(*command, "id", "--key", "score")
    corpus = db.corpus("c")
    assert (len(corpus), [key in corpus for key in ("a~1b/1", "a~1b/2")]) == (2, [True, True])


def test_some_repeated_keys_are_named(textsim: Textsim) -> None:
    def index(*keys: str) -> str:
        lines = [json.dumps({"id": key, "text": f"text {i}"}) for i, key in enumerate(keys)]
        return textsim("index", "c", "-", "--create", input="\n".join(lines)).stderr

    assert "again" not in index("a", "b")
    told = index("c", "d", "c")
    assert "1 with a repeated key (the last document stays)" in told
    assert 'keys that came again, such as "c"\n' in told
    assert 'such as "0", "1", "2", "3", "4"\n' in index(*map(str, [*range(9)] * 2))


def test_only_the_first_refusals_are_listed(news: Textsim) -> None:
    Path("a.jsonl").write_text("{\n" * 1025)
    Path("b.jsonl").write_text("".join(" " * i + "[\n" for i in range(50)))
    reason = "malformed JSON at character 2: Expecting property name enclosed in double quotes"
    lines = news("index", "news", "a.jsonl", "b.jsonl", status=2).stderr.splitlines()
    assert lines[1] == (
        f"refused: a.jsonl, line 1; a.jsonl, line 2; a.jsonl, line 3 and 1,022 more: {reason}"
    )
    assert lines[2:] == [
        "refused: b.jsonl, line 1: malformed JSON at character 2: Expecting value",
        "refused: b.jsonl, line 2: malformed JSON at character 3: Expecting value",
        "refused: b.jsonl, line 3: malformed JSON at character 4: Expecting value",
        "refused: 47 more for such a reason",
    ]
    texts = ("\n".join(f'{{"id": 1, "{chr(97 + i)}": 2}}' for i in range(26)), "{\n" * 9)
    lines = news("index", "news", "-", input="\n".join(texts), status=2).stderr.splitlines()
    assert (len(lines), lines[-1]) == (22, "... and 15 more")


def test_the_status_says_whether_anything_was_done(news: Textsim) -> None:
    bad = json.dumps({"id": "n", "text": "a\0b"})
    good = json.dumps({"id": "a", "text": NEWS["a"]})
    news("index", "news", "-", input=f"{bad}\n", status=2)
    news("index", "news", "-", input=f"{bad}\n{good}\n", status=1)
    news("index", "news", "-", input=f"{good}\n", status=0)
    news("index", "news", "-", input="", status=0)


def test_remove(news: Textsim) -> None:
    assert news("remove", "news", "a", "a", "b").stderr == "removed 2 documents\n"
    result = news("remove", "news", "b", "c", status=1)
    assert result.stderr == 'removed 1 document\nno document "b" in the corpus\n'
    result = news("remove", "news", "b", status=2)
    assert result.stderr == 'removed 0 documents\nno document "b" in the corpus\n'


def test_remove_by_prefix_by_conditions_and_from_standard_input(
    textsim: Textsim, db: ts.Database, connection: Connection
) -> None:
    corpus = db.create_corpus("c", scoped=True, language="auto")
    english = "The council approved the new budget for the schools of the city on Monday."
    german = "Der Rat der Stadt hat am Montag den neuen Haushalt fuer die Schulen beschlossen."
    weeks = product(((1, english), (2, german)), "ab")
    rows = [(f"week-{n}/{scope}", text, scope) for (n, text), scope in weeks]
    corpus.add_many([*rows, ("week_1/%", english, "a")])
    connection.execute("CREATE TABLE t (id text PRIMARY KEY, body text, scope text)")
    connection.execute("INSERT INTO t VALUES ('row', %s, 'b')", [german])
    corpus.attach("t", "id", "body", scope="scope", mode="queue")
    index_all_pending(db, corpus)

    def listed(*options: str) -> list[str]:
        lines = textsim("keys", "c", *options, "--format", "jsonl").stdout.splitlines()
        return [json.loads(line)["key"] for line in lines]

    everything = ["row", "week-1/a", "week-1/b", "week-2/a", "week-2/b", "week_1/%"]
    assert listed() == everything
    assert listed("--prefix", "week_1/%") == ["week_1/%"]  # no pattern
    assert listed("--language", "de", "--scope", "b") == ["row", "week-2/b"]
    assert listed("--source", "t") == ["row"]
    assert [each.source for each in corpus.keys(scope="b")] == ["t", None, None]
    assert "give --yes to confirm" in textsim("remove", "c", "--prefix", "week-1", status=2).stderr
    assert "give keys, or" in textsim("remove", "c", "a", "--prefix", "week-1", status=2).stderr
    assert "give keys, or" in textsim("remove", "c", status=2).stderr
    assert textsim("remove", "c", "--prefix", "week-1", "--yes").stderr == "removed 2 documents\n"
    textsim("remove", "c", "--language", "de", "--scope", "b", "--prefix", "w", "--yes")
    result = textsim("remove", "c", "week_1/%", "-", input="week-2/a\r\n\nnone\n", status=1)
    assert "removed 2 documents" in result.stderr
    assert 'no document "none"' in result.stderr
    assert listed() == ["row"]


def test_remove_says_what_a_document_stood_for(textsim: Textsim, db: ts.Database) -> None:
    textsim("corpus", "create", "known")
    lines = (json.dumps({"id": key, "text": NEWS["a"]}) for key in "xyz")
    Path("week.jsonl").write_text("\n".join(lines))
    textsim("dedupe", "week.jsonl", "--against", "known", "--add", "-o", "out.jsonl")
    assert [each.records for each in db.corpus("known").keys("x")] == [3]
    told = textsim("remove", "known", "x").stderr
    assert "2 records dropped in favour of them by dedupe --add" in told


def test_forget_prints_a_receipt(news: Textsim) -> None:
    news("judge", "news", "a", "b", "different", "--note", "by a person")
    receipt = news("forget", "news", "a", "no such key").stderr.splitlines()
    assert receipt[:2] == [
        "removed 1 document, 1 judgement, 0 events, 0 log entries",
        "the corpus was rebuilt; no relation of it has the words",
    ]
    assert receipt[2].startswith("out of reach: ")
    later = news("forget", "news", "b", "--later", "--json")
    assert json.loads(later.stdout)["has_words"] is True
    told = news("forget", "news", "--all-removed", "--later", "--yes").stderr
    assert "go with the next rebuild: textsim rebuild news" in told
    # It asks for no confirmation if it would refuse.
    for choices in ([], ["a", "--all-removed"]):
        assert (
            "expected one of keys, a scope"
            in news("forget", "news", *choices, "--yes", status=2).stderr
        )


def test_forget_ends_with_1_while_somebody_reads_words(news: Textsim, database_url: str) -> None:
    with (
        psycopg.connect(database_url, autocommit=True) as connection,
        psycopg.connect(database_url) as reader,
    ):
        database = connection.info.dbname
        connection.execute(f"ALTER DATABASE {database} SET lock_timeout = '100ms'".encode())
        reader.execute("SELECT count(*) FROM textsim.word_1")
        receipt = news("forget", "news", "a", status=1).stderr
    assert "a transaction may read the replaced corpus" in receipt
    assert "left in word_1" in news("status", "news").stderr
    news("worker", "--once")
    assert "left in word_1" not in news("status", "news").stderr


def test_only_the_rebuild_of_forget_compares_hashes(news: Textsim, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE textsim.corpus SET golden_buckets = '{}'")
    assert "removed 1 document" in news("forget", "news", "a", "--later").stderr
    refused = news("forget", "news", "b", status=2).stderr
    assert "stored golden signature" in refused
    assert "the documents are removed" in refused
    assert "removed 0 documents" in news("forget", "news", "a", "b", "--later").stderr


def test_an_empty_pattern_is_refused(textsim: Textsim, tmp_path: Path) -> None:
    refused = textsim("index", "news", str(tmp_path), "--glob", "", "--create", status=2)
    assert "expected a pattern" in refused.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("compare", "a", "b", "--corpus", "none", "--html", "no/x.svg"),
        ("dedupe", "none.jsonl", "--output", "no/x.svg"),
        ("dedupe", "none.jsonl", "--output", "x.jsonl", "--report", "no/x.jsonl"),
    ],
)
def test_outputs_are_checked_before_the_work(textsim: Textsim, command: tuple[str, ...]) -> None:
    missing = textsim(*command, status=2).stderr
    assert "cannot be written: there is no folder" in missing  # and not that the input is missing
    Path("no").mkdir()
    Path(command[-1]).mkdir()
    assert "is a folder; expected a file" in textsim(*command, status=2).stderr


def test_index_reads_from_a_query(textsim: Textsim, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int, body text, owner text, shown boolean)")
        numbers = "generate_series(1, 2500) i"
        connection.execute(
            f"INSERT INTO t SELECT i, 'text ' || i, 'a', i <> 3 FROM {numbers}".encode()
        )
        connection.execute("INSERT INTO t VALUES (0, NULL, 'a', true)")
    query = "SELECT id, body FROM t WHERE shown"
    refused = textsim("index", "c", "--query", query, "--create", status=1)
    assert "2,499 added" in refused.stderr
    assert "1 refused" in refused.stderr
    scoped = "SELECT id, body, owner FROM t WHERE body IS NOT NULL"
    textsim("index", "s", "--query", scoped, "--scope", "owner", "--create")
    told = textsim("index", "c", "--query", scoped, status=2).stderr
    assert "3 columns; expected key and text" in told
    writing = "WITH gone AS (DELETE FROM t RETURNING id, body) SELECT id, body FROM gone"
    textsim("index", "c", "--query", writing, status=2)
    assert '"SELEC"' in textsim("index", "c", "--query", "SELEC 1", status=2).stderr


def test_texts_without_words(textsim: Textsim, db: ts.Database, database_url: str) -> None:
    texts = {"1": "", "2": "?!", "3": "a quiet day", "4": "..."}
    records = [{"id": key, "text": text} for key, text in texts.items()]
    Path("empty.jsonl").write_text("\n".join(map(json.dumps, records)))
    said = "3 documents without words match nothing"
    assert said in textsim("index", "c", "empty.jsonl", "--create").stderr
    assert said in textsim("dedupe", "empty.jsonl", "-o", "unique.jsonl").stderr
    corpus = db.corpus("c")
    assert corpus.add_many(texts).without_words == 3
    assert corpus.add("5", "?").without_words == 1
    assert corpus.add("5", "no").without_words == 0
    _, report = ts.dedupe_frame(pandas.DataFrame(records), "text")
    assert report.without_words == 3
    assert "without_words=3" in repr(report)
    with psycopg.connect(database_url) as connection:
        create = "CREATE TABLE t AS SELECT * FROM json_to_recordset(%s) t (id text, text text)"
        connection.execute(create, [json.dumps(records)])
        connection.execute("ALTER TABLE t ADD PRIMARY KEY (id)")
    for unique in (False, True):
        other = db.create_corpus(f"other {unique}", is_unique=unique)
        assert other.attach("t", "id", "text").without_words == 3
    with psycopg.connect(database_url) as connection:
        connection.execute("INSERT INTO t VALUES ('6', '!')")
    assert "1 added, 1 without words" in textsim("worker", "--once").stderr
