"""The catalog of a database: every object of a schema with its definition, comment and rights."""

from __future__ import annotations

import re
from typing import Any

import psycopg

Catalog = dict[str, list[tuple[Any, ...]]]

CORPUS_FUNCTION = re.compile(r"(?:textsim\.)?_(?:candidates|write|distinct)_\d+\(")
"""Matches the functions that are created for each corpus."""

PLANNED_ONCE = re.compile(
    r"(?:textsim\.)?(?:matches|nearest|candidates|_search|neighbours|signature|jaccard|add|twins_of|_mates(?:_\d+)?|_distinct_\d+|_changes_\d+|_smallest_values|_chosen_values|_shingle_set"
    r"|_claim|_ready_entries|_pending_batch|_lease_entries|_delete_entries|_update_clusters"
    r"|_waiting)\("
)
"""Matches functions that users or workers call often: their statements are planned once in a session."""

WITHOUT_SCANS = re.compile(
    r"(?:textsim\.)?(?:_(?:candidates|write|distinct)_\d+|_smallest_values|_normal_form_of(?:_\d+)?|_word_numbers(?:_\d+)?|_mates(?:_\d+)?"
    r"|_compares_all|_search|_store_form|_forget_failures|_remove_documents?|_delete_locked|_awaited_twins|_near_misses|_index_existing|_merges|_is_uncompared|_search_warnings|_unequal_keys|_claim|_ready_entries|_pending_batch|_lease_entries|_delete_entries|_expire"
    r"|_logged_documents|_connected_keys|_update_clusters|_waiting"
    r"|_change_passage_rows|_chosen_values|_count_documents_of|_passages_of_form|passages|quote|regions)\("
)
"""Matches functions whose plans were made when the table was empty, and are used when it is full."""

WALKS_INDEX = re.compile(
    r"(?:textsim\.)?(?:_claim|_ready_entries|_expire|_logged_documents|_waiting)\("
)
"""Matches functions that walk the log, or expired documents, in the order of an index."""

WITHOUT_NESTED_LOOPS = re.compile(
    r"(?:textsim\.)?(?:_move_to_nodes|_remove_empty_nodes|_first_documents|_are_kept|_later_neighbours"
    r"|_group_nodes|_kept_groups|_flows|_continue_clusters|_store_groups|_end_clusters|_judged_pairs|_with_judged|_place_judged|_unequal_keys)(?:_\d+)?\(|(?:textsim\.)?_candidates_\d+\("
)
"""Matches functions of tracked clusters and of searches, in which the sizes of CTEs are guessed."""

WRITES_NUMBERS = re.compile(r"(?:textsim\.)?_settings\(")
"""Matches functions that write numbers as text, with all digits whatever the caller has set."""

CATALOG = {
    "relations": """
        SELECT c.relname, c.relkind, c.relpersistence, c.relreplident, c.relrowsecurity,
            c.reloptions::text, pg_get_partkeydef(c.oid), obj_description(c.oid, 'pg_class'),
            c.relacl::text
        FROM pg_class c WHERE c.relnamespace = 'textsim'::regnamespace
    """,
    "columns": """
        SELECT c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
            a.attidentity, a.attgenerated, a.attstorage, a.attcompression, a.attcollation::text,
            a.attisdropped, pg_get_expr(d.adbin, d.adrelid), col_description(c.oid, a.attnum)
        FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE c.relnamespace = 'textsim'::regnamespace
    """,
    "constraints": """
        SELECT conrelid::regclass::text, conname, contype, pg_get_constraintdef(oid)
        FROM pg_constraint WHERE connamespace = 'textsim'::regnamespace
    """,
    "indexes": """
        SELECT i.indrelid::regclass::text, pg_get_indexdef(i.indexrelid), i.indisvalid
        FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        WHERE c.relnamespace = 'textsim'::regnamespace
    """,
    "sequences": """
        SELECT sequencename, data_type::text, start_value, min_value, max_value, increment_by,
            cycle, cache_size
        FROM pg_sequences WHERE schemaname = 'textsim'
    """,
    "functions": """
        SELECT p.oid::regprocedure::text, p.prokind,
            CASE WHEN p.prokind = 'a' THEN NULL ELSE pg_get_functiondef(p.oid) END,
            obj_description(p.oid, 'pg_proc'), p.proacl::text
        FROM pg_proc p WHERE p.pronamespace = 'textsim'::regnamespace
    """,
    "aggregates": """
        SELECT a.aggfnoid::text, a.aggtransfn::text, a.aggfinalfn::text, a.agginitval,
            a.aggcombinefn::text, format_type(a.aggtranstype, NULL)
        FROM pg_aggregate a JOIN pg_proc p ON p.oid = a.aggfnoid
        WHERE p.pronamespace = 'textsim'::regnamespace
    """,
    "types": """
        SELECT t.typname, t.typtype, format_type(t.typbasetype, t.typtypmod),
            obj_description(t.oid, 'pg_type')
        FROM pg_type t WHERE t.typnamespace = 'textsim'::regnamespace
    """,
    "triggers": """
        SELECT tgrelid::regclass::text, tgname, pg_get_triggerdef(t.oid),
            obj_description(t.oid, 'pg_trigger')
        FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
        WHERE c.relnamespace = 'textsim'::regnamespace AND NOT tgisinternal
    """,
    "policies": """
        SELECT tablename, policyname, permissive, roles::text, cmd, qual, with_check FROM pg_policies
        WHERE schemaname = 'textsim'
    """,
    "schema": """
        SELECT obj_description(oid, 'pg_namespace'), nspacl::text FROM pg_namespace
        WHERE nspname = 'textsim'
    """,
    "version": "SELECT version_num FROM textsim.alembic_version",
}


ARGUMENTS = """
(
    SELECT array_agg(u.name ORDER BY u.place) FILTER (WHERE u.goes_in) AS arguments,
        array_agg(pg_get_function_arg_default(p.oid, u.place::integer) ORDER BY u.place)
            FILTER (WHERE u.goes_in) AS defaults,
        coalesce(array_agg(u.name ORDER BY u.place) FILTER (WHERE u.comes_out), '{}') AS columns,
        array_agg(format_type(u.type, NULL) ORDER BY u.place) FILTER (WHERE u.comes_out) AS types
    FROM (
        SELECT a.*, coalesce(a.mode NOT IN ('o', 't'), true) AS goes_in,
            coalesce(a.mode NOT IN ('i', 'v'), false) AS comes_out
        FROM unnest(p.proargnames, p.proargmodes, p.proallargtypes)
            WITH ORDINALITY a (name, mode, type, place)) u
)
"""
"""A subquery of a function p: its arguments, their defaults, its columns, and their types."""

TEXT_SETTINGS = [
    *("TimeZone=UTC", "DateStyle=ISO", "IntervalStyle=postgres", "extra_float_digits=1"),
    *("bytea_output=hex", "xmloption=content"),
]
"""The settings that change the text of a value."""


def check_settings(function: str, settings: list[str], plans: bool) -> None:
    """Check the settings of a plpgsql function; function: its name and types.

    plans: whether it may read tables. Its statements have high costs, for example because a setting
    forbids the only plan, so a server with JIT would compile them for half a second.
    """
    assert ("jit=off" in settings) == plans, function
    others = [each for each in settings if each != "jit=off"]
    assert others == _expected_settings(function), function


def _expected_settings(function: str) -> list[str]:
    settings = ["search_path=pg_catalog, pg_temp"]
    if CORPUS_FUNCTION.match(function) or PLANNED_ONCE.match(function):
        settings.append("plan_cache_mode=force_generic_plan")
    if WITHOUT_SCANS.match(function):
        settings.append("enable_seqscan=off")
    if WALKS_INDEX.match(function):
        settings.append("enable_bitmapscan=off")
    in_order = ("_ready_entries", "_expire", "_logged_documents", "_waiting")
    if any(f"{name}(" in function for name in in_order):
        settings.append("enable_sort=off")
    if WITHOUT_NESTED_LOOPS.match(function):
        settings.append("enable_nestloop=off")
    if "_update_clusters(" in function:
        settings += ["enable_hashjoin=on", "enable_mergejoin=on"]
    if "_connected_keys" in function:
        settings += ["enable_hashjoin=off", "enable_mergejoin=off"]
    if WRITES_NUMBERS.match(function):
        settings += ["extra_float_digits=1", "IntervalStyle=postgres"]
    if "_pairs_query(" in function or "_filled(" in function:
        settings.append("extra_float_digits=1")
    if "_catalog(" in function and "_record" not in function:
        settings += ["quote_all_identifiers=off", "standard_conforming_strings=on"]
        settings += ["IntervalStyle=postgres", "bytea_output=hex"]
    if "_wrong_objects(textsim" in function:
        settings += ["quote_all_identifiers=off", "standard_conforming_strings=on"]
    if "_moment(" in function:
        settings += ["TimeZone=UTC", "DateStyle=ISO"]
    if "_execute_as(" in function:
        settings += ["array_nulls=on", "xmloption=content"]
    if "_execute_as(" in function or "_locked_row(" in function:
        settings.append("lc_monetary=C")  # money is written and read alike
    if any(name in function for name in ("_text_of(", "_prepare_source(", "_changes_")):
        settings += TEXT_SETTINGS
    if re.search(r"_functions_like\(|grant_writer\(|_prepare_source\(|_make_function\(", function):
        settings.append("quote_all_identifiers=off")
    return settings


def fetch_sorted(url: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return sorted(connection.execute(query.encode()).fetchall(), key=repr)


def schema_catalog(url: str) -> Catalog:
    return {name: fetch_sorted(url, query) for name, query in CATALOG.items()}


def without_leftovers(upgraded: Catalog, old: Catalog, new: Catalog) -> Catalog:
    """Leave out what only an older schema made: functions that its clients call, and a sequence.

    Clients that run during an upgrade still call them, so they stay, and the next step drops them.
    """
    left = {row[0] for name in ("functions", "sequences") for row in old[name]}
    left -= {row[0] for rows in new.values() for row in rows}
    called = r"(textsim\.)?(_|members_of\(|cluster_of\(|scopes\(|signature\()|last_notice$"
    left = {each for each in left if re.match(called, each)}
    return {name: [row for row in rows if row[0] not in left] for name, rows in upgraded.items()}


def assert_same_schemas(url: str, *others: str) -> None:
    """Assert that the schemas of databases are equal."""
    expected, *catalogs = map(schema_catalog, (url, *others))
    for name in CATALOG:
        for catalog in catalogs:
            assert catalog[name] == expected[name], name


def user_catalog(url: str) -> list[list[tuple[Any, ...]]]:
    """Return every schema, relation, function, type and extension that is not part of the server."""
    own = "NOT IN ('pg_catalog', 'information_schema', 'pg_toast')"
    queries = [f"SELECT nspname FROM pg_namespace WHERE nspname {own}"]
    for kind, table in (("rel", "pg_class"), ("pro", "pg_proc"), ("typ", "pg_type")):
        of_schema = f"{kind}namespace::regnamespace::text {own}"
        queries.append(f"SELECT {kind}name FROM {table} WHERE {of_schema}")
    return [fetch_sorted(url, query) for query in (*queries, "SELECT extname FROM pg_extension")]
