"""The SQL functions declare what they must, and refuse wrong and missing arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import LiteralString

import psycopg
import pytest

import textsim_db as ts
from tests.support.catalog import check_settings
from tests.support.connections import Connection

PUBLIC = {
    "immutable strict": ("join_key key_part levenshtein measure normal_form"),
    "stable": (
        "candidates cluster_events "
        "contradictions differs distinct_of jaccard judgements matches "
        "members nearest neighbours passages quote regions rejected"
    ),
    "volatile": (
        "add add_unique attach clusters create_corpus detach drop_corpus "
        "doubtful duplicates expire forget grant_reader grant_writer "
        "group_pairs index_pending judge lock_corpus merge pairs reject remove revoke_all "
        "set_owner shared_passages track twins_of unjudge unmerge untrack update_clusters"
    ),
    "stable strict": ("characters status"),
}
"""The public functions by their properties. The reference of SQL has their arguments."""
DEFINERS = {
    *("_prepare_source", "_activate_source", "_release_source", "_note_shape"),
    *(
        "_update_at_commit",
        "_log_judged",
        "_make_function",
        "_create_relations",
        "_create_tracking_relations",
    ),
}
COMMITTING = {
    "_check_no_transaction",
    "_index_keys",
    "expire",
    "index_pending",
    "merge",
    "update_clusters",
}
"""Procedures that commit; a procedure with a SET clause may not commit, so these have none."""


# Each public function that changes something, and the arguments that may not be NULL.
CHANGES = {
    "add": ("'c', 'a', 'b'", {0: "name of the corpus", 1: "the key", 2: "the text"}),
    "add_unique": ("'u', 'a', 'b'", {0: "name of the corpus", 1: "the key", 2: "the text"}),
    "reject": ("'u', 'a', 'b'", {0: "name of the corpus", 1: "the key", 2: "the reason"}),
    "remove": ("'c', 'a'", {0: "name of the corpus", 1: "the key"}),
    "forget": ("'c', '{a}'", {0: "name of the corpus"}),
    "lock_corpus": ("'u'", {0: "name of the corpus"}),
    "create_corpus": (
        "'new', 'word:3', 0.8, 0.95, 128, 1, NULL, NULL, '{}', NULL, false",
        {
            0: "name of the corpus",
            1: "shingle",
            2: "threshold",
            3: "recall",
            4: "num_hashes",
            5: "seed",
            8: "stop_words",
            10: "is_unique",
        },
    ),
    "drop_corpus": ("'c'", {0: "name of the corpus"}),
    "attach": (
        "'c', 't', 'id', 'body', NULL, 'refuse'",
        {0: "name of the corpus", 1: "table", 2: "table", 3: "table", 5: "existing"},
    ),
    "detach": ("'c', 't'", {0: "name of the corpus", 1: "not attached"}),
    "judge": (
        "'c', 'a', 'b', 'same'",
        {0: "name of the corpus", 1: "a key is NULL", 2: "a key is NULL", 3: "verdict is NULL"},
    ),
    "unjudge": ("'c', 'a', 'b'", {0: "name of the corpus", 1: "a key is NULL", 2: "a key is NULL"}),
    "unmerge": (
        "'c', 'a', NULL, NULL, NULL, false",
        {0: "name of the corpus", 1: "key, kept, run or since", 5: "mergeable"},
    ),
    "track": ("'c', 'kept'", {0: "name of the corpus", 1: "linkage"}),
    "untrack": ("'c'", {0: "name of the corpus"}),
    "grant_reader": ("current_user::regrole, 'c'", {0: "the role", 1: "name of the corpus"}),
    "grant_writer": ("current_user::regrole, 'c'", {0: "the role", 1: "name of the corpus"}),
    "revoke_all": ("current_user::regrole", {0: "the role"}),
    "set_owner": ("current_user::regrole", {0: "the role"}),
}


def test_a_null_argument_of_a_change_is_refused(connection: Connection) -> None:
    """A change that silently does nothing, or something else, is worse than an error."""
    connection.execute("CREATE TABLE t (id int PRIMARY KEY, body text)")
    connection.execute("SELECT textsim.create_corpus('c')")
    connection.execute("SELECT textsim.create_corpus('u', is_unique => true)")
    for function, (text, required) in CHANGES.items():
        arguments = text.split(", ")
        for place, named in required.items():
            changed = [*arguments[:place], "NULL", *arguments[place + 1 :]]
            call = f"SELECT textsim.{function.strip()}({', '.join(changed)})"
            with pytest.raises(psycopg.Error, match=named) as error:
                connection.execute(call.encode())
            # invalid parameter, undefined object
            assert error.value.sqlstate in ("22023", "42704"), call


def test_every_change_is_tried_with_null() -> None:
    volatile = set(PUBLIC["volatile"].split())
    searches = {"pairs", "doubtful", "clusters", "duplicates", "group_pairs"}
    searches |= {"twins_of", "index_pending", "merge", "expire", "update_clusters"}
    searches |= {"shared_passages"}
    assert volatile - searches == {name.strip() for name in CHANGES}


@pytest.fixture(scope="module")
def two_corpora(shared_db: ts.Database) -> Iterator[None]:
    """The corpora "c" and "auto", which identifies languages; each has a document."""
    for name, language in (("c", None), ("auto", "auto")):
        shared_db.create_corpus(name, language=language).add("a", "one two three")
    yield
    for name in ("c", "auto"):
        shared_db.drop_corpus(name)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("textsim.matches('none', 'a')", 'corpus "none" does not exist'),
        ("textsim.measure('dice', 'a', 'b', 'line')", 'unit is "line"; expected "word" or "char"'),
        ("textsim.measure('dice', 'a', 'b', 'word', 0)", "shingle length is 0; expected 1 to 1000"),
        ("textsim.matches('c', 'a', 1.5)", "threshold is 1.5; expected above 0, at most 1"),
        ("textsim.pairs('c', 0)", "threshold is 0; expected above 0, at most 1"),
        ("textsim.clusters('c', 0)", "threshold is 0; expected above 0, at most 1"),
        ("textsim.clusters('none')", 'corpus "none" does not exist'),
        (
            "textsim.clusters('c', linkage => 'average')",
            "linkage is 'average'; expected single, complete or kept",
        ),
        (
            "textsim.duplicates('c', linkage => NULL)",
            "linkage is NULL; expected single, complete or kept",
        ),
        (
            "textsim.duplicates('c', 'best')",
            "keep is 'best'; expected first, last, longest or shortest",
        ),
        (
            "textsim.duplicates('c', NULL)",
            "keep is NULL; expected first, last, longest or shortest",
        ),
        ("textsim.judgements('none')", 'corpus "none" does not exist'),
        ("textsim.contradictions(NULL)", "the name of the corpus is NULL"),
        ("textsim.matches(NULL, 'a', language => 'en')", "the name of the corpus is NULL"),
        ("textsim.pairs(NULL)", "the name of the corpus is NULL"),
        ("textsim.duplicates(NULL)", "the name of the corpus is NULL"),
        (
            "textsim.judge('c', 'a', 'b', 'equal')",
            "verdict is 'equal'; expected same, different or unsure",
        ),
        (
            "textsim.judge('c', 'a', 'b', 'same', NULL, '')",
            "replaces is ''; expected same, different or unsure",
        ),
        (
            "textsim.judge('c', 'a', 'a', 'same')",
            "the pair ('a', 'a') names no two documents: it has the same key twice",
        ),
        (
            "textsim.unjudge('c', repeat('a', 1001), '')",
            f"the pair ('{'a' * 100}', '') names no two documents: a key is longer than 1,000 bytes",
        ),
        *(
            (f"textsim.{search}, {argument})", message)
            for search in ("matches('c', 'a b'", "matches('c', NULL", "neighbours('c', 'none'")
            for argument, message in (
                ("max_results => -1", "max_results is -1; expected 1 or more, or NULL for all"),
                ("max_results => 0", "max_results is 0; expected 1 or more, or NULL for all"),
                ("threshold => 1.5", "threshold is 1.5; expected above 0, at most 1"),
                ("threshold => 'NaN'", "threshold is NaN; expected above 0, at most 1"),
            )
        ),
        *(
            (f"textsim.{function}('{corpus}', {rest}language => '{code}')", message)
            for function, rest in (
                ("jaccard", "'a', 'b', "),
                ("candidates", "'a', "),
                ("matches", "'a', "),
                ("neighbours", "'a', "),
                ("pairs", ""),
            )
            for corpus, code, message in (
                ("c", "de", 'corpus "c" does not identify languages'),
                ("auto", "DE", 'language is "DE"; expected a code of ISO 639, such as "en"'),
                ("auto", "", 'language is ""; expected a code of ISO 639, such as "en"'),
            )
        ),
    ],
)
@pytest.mark.usefixtures("two_corpora")
def test_wrong_arguments_are_refused_with_a_message(
    shared_connection: Connection, call: LiteralString, message: str
) -> None:
    with pytest.raises(psycopg.Error) as caught:
        shared_connection.execute("SELECT * FROM " + call)
    assert caught.value.diag.message_primary == message


WITH_SUBTRANSACTIONS = {
    "_moment",
    "_differing_rows",
    "_unequal_keys",
    "_count_documents",
    "_merge_figures",
    "_corpus_metrics",
    "status",
}
"""Functions that handle errors, and their callers: no parallel worker of PostgreSQL 16 can do that."""


@pytest.mark.both_servers
def test_the_catalog_declares_every_function(shared_connection: Connection) -> None:
    rows = shared_connection.execute(
        """
        SELECT p.proname, p.oid::regprocedure::text,
            CASE p.provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END
                || CASE WHEN p.proisstrict THEN ' strict' ELSE '' END,
            p.proparallel, l.lanname, p.proconfig, p.prosqlbody IS NOT NULL, p.prosecdef,
            obj_description(p.oid, 'pg_proc')
        FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
        WHERE p.pronamespace = 'textsim'::regnamespace
        """
    ).fetchall()
    declared = {(name, kind) for kind, names in PUBLIC.items() for name in names.split()}
    assert {(row[0], row[2]) for row in rows if not row[0].startswith("_")} == declared
    for name, function, volatility, parallel, language, settings, parsed, definer, comment in rows:
        assert (comment is None) == name.startswith("_"), name
        assert definer == (name in DEFINERS), name
        is_unsafe = volatility.startswith("volatile") or name in WITH_SUBTRANSACTIONS
        assert parallel == ("u" if is_unsafe else "s"), name
        # The names in a body that was parsed at creation are fixed; any other body needs a search path.
        if not parsed and name not in COMMITTING:
            assert language == "plpgsql", name
            check_settings(function, settings, plans=not volatility.startswith("immutable"))


def test_no_function_changes_case_by_the_collation_of_the_database(
    db: ts.Database, connection: Connection
) -> None:
    """In a Turkish database upper('insert') is no keyword."""
    db.create_corpus("c", passages=13).track()
    rows = connection.execute(
        "SELECT p.oid::regprocedure::text, pg_get_functiondef(p.oid) FROM pg_proc p "
        "WHERE p.pronamespace = 'textsim'::regnamespace AND p.prokind <> 'a'"
    ).fetchall()
    calls = [
        (name, argument)
        for name, definition in rows
        for argument in re.findall(r"\b(?:upper|lower|initcap)\((.*)", definition)
    ]
    assert calls
    for name, argument in calls:
        assert re.match(r"""[\w.]+ COLLATE (?:pg_catalog\.)?"C"\)""", argument), (name, argument)
    assert not [name for name, text in rows if re.search(r"~\*|(?i:\bilike\b)", text)]


def test_no_function_depends_on_the_meaning_of_a_backslash(connection: Connection) -> None:
    """If standard_conforming_strings is off, a backslash in '...' escapes what follows it."""
    literals = re.compile(r"(?:--[^\n]*|(E?)('(?:[^']|'')*'(?:\s*\n\s*'(?:[^']|'')*')*))")
    rows = connection.execute(
        "SELECT p.oid::regprocedure::text, p.prosrc FROM pg_proc p "
        "JOIN pg_language l ON l.oid = p.prolang AND l.lanname = 'plpgsql' "
        "WHERE p.pronamespace = 'textsim'::regnamespace"
    ).fetchall()
    assert rows
    for name, body in rows:
        for prefix, literal in literals.findall(body):
            # \u is the same character in a literal and in a regular expression.
            assert prefix or not re.search(r"\\[^uU]", literal), (name, literal)
