"""textsim judge and judgements: what people say of pairs of documents."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Annotated

import typer

from textsim_db.cli import options
from textsim_db.cli.messages import print_message, print_result
from textsim_db.cli.opening import connect
from textsim_db.cli.operations import Call, Operation, as_command
from textsim_db.cli.output import Format, write
from textsim_db.errors import InputError, shown
from textsim_db.files.file_kinds import FileFormat, Kind, Quote
from textsim_db.results import Judgement
from textsim_db.results.numbers_as_text import count
from textsim_db.settings.named_values import Verdict

app = typer.Typer(
    no_args_is_help=True, help="List, import and remove what people said of pairs of documents."
)


def _show_judged(call: Call) -> None:
    keys = call.arguments["a"], call.arguments["b"]
    message = "recorded" if call.result else "recorded already"
    judged = {name: call.arguments[name] for name in ("a", "b", "verdict")}
    print_result(message, corpus=call.corpus.name, **judged, is_new=call.result)
    for key in keys:
        if key not in call.corpus:
            print_message(f'the corpus has no document "{shown(key)}" now')


def _show_removed(call: Call) -> None:
    message = "removed" if call.result else "this pair is not judged"
    print_result(message, corpus=call.corpus.name, **call.arguments, is_removed=call.result)
    if not call.result:
        raise typer.Exit(2)


JUDGE = Operation(
    "judge",
    """Record what you say of two documents of a corpus.

    `textsim clusters --judgements` and tracked clusters obey it. The documents need not exist. If the
    words of one change later, the judgement is stale: it is listed, but not obeyed until you judge the
    pair again. With --any-text it holds whatever the texts become.

    Examples:
    - `textsim judge news article-17 article-18 same`
    - `textsim judge news article-17 article-19 different --note "another year" --replaces unsure`

    """,
    show=_show_judged,
    computes=False,
)
LIST = Operation(
    "judgements",
    """List the judgements of a corpus, in the order of their keys.

    CSV and JSON lines are files that `textsim judgements import` reads.

    Example: `textsim judgements list news --format csv > judgements.csv`
    """,
    columns=Judgement._fields,
    noun="judgement",
    computes=False,
)
DOUBTFUL = Operation(
    "doubtful",
    """List the matches that nobody has judged, the most similar first.

    They are the matches of a unique corpus below its --unique-from; `textsim judge` takes a pair off the
    list. If the corpus is tracked, its stored matches are read.

    Examples:
    - `textsim doubtful news`
    - `textsim doubtful news --siblings`
    """,
    columns=("similarity", "a", "b", "differs"),
    noun="pair",
    computes=False,
)
REMOVE = Operation(
    "unjudge",
    """Remove the judgement of two documents. Exit status 2 if there is none.

    Example: `textsim judgements remove news article-17 article-18`
    """,
    show=_show_removed,
    computes=False,
)
app.command("list")(as_command(LIST))


@app.command("import")
def import_(
    corpus: options.CorpusName,
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="A file of records with the columns, or members in JSON, a and b (two keys), verdict "
            'and, if you like, note, source, confidence, hash_a and hash_b; "-" is standard input.',
        ),
    ],
    kind: options.RecordKindOption = Kind.AUTO,
    separator: options.SeparatorOption = None,
    quote: options.QuoteOption = Quote.AUTO,
    encoding: options.EncodingOption = None,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Replace stored judgements that have another verdict, note, source or confidence. "
            "Without it, the first of them is an error.",
        ),
    ] = False,
    database_url: options.DatabaseUrl = None,
) -> None:
    """Record the judgements of a file, all or none.

    You are the one who judges, now. A file of textsim judgements list says which texts were judged, so a
    judgement of texts that have changed since is stale; without these columns the present texts are.
    Other columns do not count. It prints how many judgements are new, or with --replace new or replaced.

    Example: `textsim judgements import news judgements.csv`
    """
    from textsim_db.files.judgement_files import read_judgements

    read = read_judgements(path, FileFormat(kind, separator, quote, encoding))
    with connect(database_url) as db:
        new = db.corpus(corpus, on_server=True).judge_many(
            (judgement[:7] for judgement in read), replace, place_of=lambda i: read[i].place
        )
    kind_of_new = "new or replaced" if replace else "new"
    print_result(
        f"{count(len(read), 'judgement')} read, {new:,} {kind_of_new}",
        corpus=corpus,
        judgements=len(read),
        new=new,
    )


@app.command("cluster")
def cluster(
    report: Annotated[
        str,
        typer.Argument(
            metavar="REPORT",
            help="A file that `textsim dedupe --report` or `textsim clusters --format jsonl` wrote.",
        ),
    ],
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key of a record of the cluster.")],
    verdict: Annotated[Verdict, typer.Argument(help="What every two of its records are.")],
) -> None:
    """Write the judgements of a whole cluster, which a report names, as JSON lines.

    Append them to the file that `textsim dedupe --judgements` obeys, or pipe them to `textsim judgements
    import CORPUS -`.

    Example: `textsim judgements cluster clusters.jsonl article-17 different > judgements.jsonl`
    """
    try:
        with open(report, "rb") as file:
            clusters = [*map(_keys_of, file)]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{shown(report)} has a line that is no cluster of keys") from error
    found = next((keys for keys in clusters if key in keys), None)
    if found is None:
        raise InputError(f'no cluster of {shown(report)} has a record "{shown(key)}"')
    pairs = combinations(dict.fromkeys(found), 2)
    write(("a", "b", "verdict"), ((a, b, verdict) for a, b in pairs), Format.JSONL)


def _keys_of(line: bytes) -> list[str]:
    cluster = json.loads(line)
    if "removed" in cluster:
        members = cluster["kept"], *cluster.get("also_kept", ()), *cluster["removed"]
        return [each["key"] for each in members]
    return list(cluster["keys"])


app.command("remove")(as_command(REMOVE))
