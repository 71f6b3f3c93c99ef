"""A role with rights to one corpus calls every function, and learns nothing of another corpus."""

from __future__ import annotations

import json
import re
from typing import Any

import psycopg
import pytest
from psycopg.errors import Diagnostic

from tests.support.catalog import ARGUMENTS
from tests.support.roles import Stage, as_role
from tests.support.sampling import sample

WORD, KEY, SCOPE, NOTE = "secretword", "secretkey", "secretscope", "secretnote"
TEXT = f"a text with the {WORD} of {WORD}s"
# The hidden corpus, its attached table and a document have this id.
ID = 2
CORPUS = f"(SELECT c FROM textsim.corpus c WHERE c.id = {ID})"
PART = f"textsim._part('{SCOPE}')"
IDS = f"ARRAY[1, {ID}, 3]"
LISTED = f"ROW('{KEY}2', 'a text', {PART}, NULL, 1, {IDS})::textsim._listed_text"
# The arguments of a role that knows or guesses hidden things, by their type or name.
PIECES = '[{"text": "a text", "form": "a text", "words": 1, "in_text": 0, "in_document": 0}]'
JUDGED = json.dumps({"origin": ID, "a": KEY, "b": f"{KEY}2", "verdict": "same"})
BY_TYPE = {
    "anyelement": "'a'::text",
    "bigint": f"{ID}",
    "bigint[]": IDS,
    "boolean": "true",
    "double precision": "0.5",
    "double precision[]": "ARRAY[0.5, 0.6, 0.7]",
    "integer": f"{ID}",
    "integer[]": IDS,
    "interval": "'1 day'",
    "jsonb": f"'{PIECES}'",
    "jsonb[]": f"ARRAY['{PIECES}']",
    "name": "'body'",
    "name[]": "ARRAY['id']",
    "numeric": f"{ID}",
    "oid": "'hidden'::regclass",
    "regclass": "'hidden'",
    "regclass[]": f"ARRAY['textsim.document_{ID}', 'textsim.word_{ID}']",
    "regrole": "quote_ident(current_user)",
    "smallint[]": IDS,
    "textsim._listed_text[]": f"ARRAY[{LISTED}]",
    "textsim._sketched": f"textsim._sketched({CORPUS}, 'a text', {PART})",
    "textsim.corpus": CORPUS,
    "textsim.judgement[]": f"ARRAY[jsonb_populate_record(NULL::textsim.judgement, '{JUDGED}')]",
    "textsim.merged_row": f"ROW(1, {ID}, 'hidden', 1, now(), current_user, '{KEY}', '{KEY}', 1, "
    "'{}', NULL)",
    "textsim.judgement": f"(SELECT j FROM textsim.judgement j WHERE j.origin = {ID})",
    "textsim.source": f"(SELECT s FROM textsim.source s WHERE s.id = {ID})",
    "timestamp with time zone": "'2100-01-01'",
    "uuid": "textsim._words_hash(NULL, 'a text', 0)",
    "uuid[]": "ARRAY[textsim._words_hash(NULL, 'a text', 0)]",
}
BY_NAME = {
    "text": {
        "corpus judged_corpus name": "hidden",
        "a key old_key after": KEY,
        "b kept new_key other_key": f"{KEY}2",
        "body text form run original value part word": TEXT,
        "scope": SCOPE,
        "query lock read": f"SELECT key, key FROM textsim.document_{ID}",
        "definition statement": "CREATE FUNCTION textsim.mine() RETURNS int LANGUAGE sql RETURN 1",
        "function": "textsim.mine()",
        "rights_of": f"document_{ID}",
        "linkage": "kept",
        "measure": "dice",
        "noun": "row",
        "keep": "first",
        "unit": "word",
        "shingle": "word:3",
        "verdict replaces": "same",
        "mode": "queue",
        "missing": "keep",
        "existing": "compare",
        "kind": "change",
        "pattern": "document",
        "version": "NEW",
        "alias": "d",
        "privilege": "SELECT",
        "operation event": "INSERT",
        "caller_path": "public",
        "row_filter row_condition": "true",
        "separator": " ",
        "action cause documents error fault note purpose reason row_fault source template": "any",
    },
    "text[]": {
        "keys kept forgotten before after": f"{{{KEY},{KEY}2}}",
        "bodies texts forms": f"{{{TEXT},a text}}",
        "scopes": f"{{{SCOPE},{SCOPE}}}",
        "a b one other shingles units words choices parts signs": "{a,text}",
        "guards guard": "{numbers,negations,words}",
        "guard_fillers": "{please}",
        "kinds": "{change,words,failed}",
        "verdicts": "{same,different}",
        "functions": "{_normal_form_of}",
        "corpora": "{hidden}",
        "tables": "{source}",
    },
    "integer": {"words": "9"},
    "double precision": {"threshold": "0.9"},
    "boolean": {"all_expired all_removed": "false"},
    "timestamp with time zone": {"at": "infinity"},
    "name": {"key_column": "id", "scope_column": "tenant", "time_column expires_column": "at"},
}
VALUES = {
    (kind, name): f"$v${value}$v$"
    for kind, by_names in BY_NAME.items()
    for names, value in by_names.items()
    for name in names.split()
} | {("text", "language"): "NULL"}
FUNCTIONS = f"""
SELECT p.oid::regproc::text, p.prokind::text, p.prorettype::regtype::text,
    p.provariadic > 0, p.pronargdefaults, coalesce((SELECT a.arguments FROM {ARGUMENTS} a), '{{}}'),
    (SELECT coalesce(array_agg(t::regtype::text ORDER BY place), '{{}}')
        FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY u (t, place))
FROM pg_proc p
WHERE p.pronamespace = 'textsim'::regnamespace AND has_function_privilege(p.oid, 'EXECUTE')
ORDER BY 1, 6, 7
"""


def calls(stage: Stage, role: str) -> list[str]:
    """Return statements that call each function that a role may execute."""
    statements = []
    unknown = []
    for function, kind, result, is_variadic, defaults, names, types in stage.run(role, FUNCTIONS):
        if result == "trigger":
            statements += [
                f"CREATE TABLE public.document_{ID} AS SELECT * FROM textsim.document_1; "
                f"CREATE TRIGGER t AFTER UPDATE ON public.document_{ID} {reads} "
                f"EXECUTE FUNCTION {function}('{ID}'); UPDATE public.document_{ID} SET id = id + {ID}"
                for reads in (
                    "FOR EACH ROW",
                    "REFERENCING OLD TABLE AS old_documents NEW TABLE AS new_documents",
                    "REFERENCING NEW TABLE AS changed",
                )
            ]
            continue
        arguments = []
        for name, of_type in zip(names, types, strict=True):
            whole, last = (VALUES.get((of_type, n)) for n in (name, name.rsplit("_")[-1]))
            value = whole or last or BY_TYPE.get(of_type)
            if value is None:
                unknown.append(f"{function}: {name} {of_type}")
            cast = "" if of_type == "anyelement" else f"::{of_type}"
            arguments.append(f"{name} => {value}{cast}")
        if is_variadic:  # without the last argument, the server finds no function by names
            arguments = [each.split(" => ", 1)[1] for each in arguments]
            arguments[-1] = f"VARIADIC {arguments[-1]}"
        call = "CALL {}({})" if kind == "p" else "SELECT f::text FROM {}({}) f"
        statements += [
            call.format(function, ", ".join(arguments[:given]))
            for given in range(len(arguments) - defaults, len(arguments) + 1)
        ]
    assert not unknown, f"no value is known for these arguments: {unknown}"
    return statements


def answers(stage: Stage, role: str) -> dict[str, str]:
    """Return the rows, notices and errors of each call; its changes are rolled back."""
    said: list[tuple[str | None, ...]] = []

    def note(diagnostic: Diagnostic) -> None:
        said.append(
            (
                *(diagnostic.message_primary, diagnostic.message_detail, diagnostic.message_hint),
                diagnostic.context,
            )
        )

    results = {}
    stage.run(stage.owner, "SELECT setval('textsim.document_1_id_seq', 10)")
    with psycopg.connect(as_role(stage.url, role)) as connection:
        connection.add_notice_handler(note)
        for statement in calls(stage, role):
            said.clear()
            rows: list[str] = []
            connection.autocommit = statement.startswith("CALL")
            try:
                connection.execute(b"SET statement_timeout = '60s'")
                cursor = connection.execute(statement.encode())
                # The catalog has its rows in another order after other statements.
                rows = sorted(map(repr, cursor.fetchall() if cursor.description else []))
            except psycopg.Error as error:
                if error.sqlstate in ("42601", "42883", "42725"):  # the call is wrong
                    raise
                note(error.diag)
            connection.rollback()
            answer = f"{rows} {said}".replace(statement, "")
            results[statement] = re.sub(r"\d+-\d+-\d+ \d+:\d+:\d[\d.]*", "a time", answer)
    return results


@pytest.mark.parametrize("is_unique", sample([False, True], 2, "more"))
def test_no_function_tells_of_another_corpus(stage: Stage, is_unique: bool) -> None:
    """The test calls every function of the catalog, also those that are added later."""
    with stage.connect(stage.owner) as db:
        settings: dict[str, Any] = {"passages": 8, "keep_for": "1 day", "is_unique": is_unique}
        db.create_corpus("hidden", scoped=True, **settings).track()
    stage.run(
        stage.owner,
        f"SELECT textsim.revoke_all('\"{stage.writer}\"')",
        f"SELECT textsim.grant_writer('\"{stage.writer}\"', 'news')",
    )
    stage.run(
        stage.writer,
        "CREATE TABLE mine (id text PRIMARY KEY, body text)",
        "SELECT textsim.attach('news', 'mine', 'id', 'body')",
    )
    stage.run(
        stage.owner,
        "CREATE TABLE hidden (id text PRIMARY KEY, body text, tenant text, at timestamptz)",
        "SELECT textsim.attach('hidden', 'hidden', 'id', 'body', scope_column => 'tenant', "
        "time_column => 'at')",
        f"SELECT textsim.add('hidden', key, '{TEXT}', '{SCOPE}', unique_from => 'Infinity') "
        f"FROM unnest('{{first,{KEY},{KEY}2}}'::text[]) key",
    )
    if not is_unique:  # it would refuse the row
        too_long = f"INSERT INTO hidden VALUES ('{KEY}3', '{TEXT}', repeat('{SCOPE}', 99), now())"
        stage.run(stage.owner, too_long)
    with stage.connect(stage.owner) as db:
        db.worker().run(until_idle=True)
        db.corpus("hidden").judge(KEY, f"{KEY}2", "different", NOTE)
        db.corpus("hidden").forget(["first"], later=True)
    stage.run(
        stage.owner,
        f"INSERT INTO hidden VALUES ('{KEY}4', 'a {WORD}', '{SCOPE}', now())",
        f"SELECT textsim.add('hidden', '{KEY}5', 'a new {WORD}', '{SCOPE}')",
    )
    planted = f"SELECT key FROM textsim.document_{ID} WHERE id = {ID}"
    assert stage.run(stage.owner, planted) == [(KEY,)]
    before = answers(stage, stage.writer)
    leaks = {
        statement: answer
        for statement, answer in before.items()
        if any(text in answer and text not in statement for text in (WORD, KEY, SCOPE, NOTE))
    }
    assert not leaks
    # All hidden things change, and no answer does.
    stage.run(
        stage.owner,
        "DELETE FROM hidden",
        f"SELECT textsim.unjudge('hidden', '{KEY}', '{KEY}2')",
        f"SELECT textsim.forget('hidden', ARRAY['{KEY}', '{KEY}2', '{KEY}3', '{KEY}5'])",
        f"DELETE FROM textsim.word_{ID} WHERE word LIKE 'secret%'",
        "SELECT textsim.add('hidden', 'other' || n, 'other words ' || n, 'other') "
        "FROM generate_series(1, 50) n",
    )
    with stage.connect(stage.owner) as db:
        db.worker().run(until_idle=True)
    after = answers(stage, stage.writer)
    assert before.keys() == after.keys()
    assert [
        (statement, before[statement], after[statement])
        for statement in before
        if before[statement] != after[statement]
    ] == []
