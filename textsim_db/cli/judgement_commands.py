"""textsim judge and judgements: what people say of pairs of documents."""

from __future__ import annotations

from typing import Annotated

import typer

from textsim_db.cli.connections import connect
from textsim_db.cli.messages import print_message, print_result
from textsim_db.cli.options import (
    CorpusName,
    DatabaseUrl,
    choice_of,
    choice_option,
    record_kind_option,
)
from textsim_db.cli.output import Format, FormatOption, write
from textsim_db.errors import shown
from textsim_db.files.file_kinds import Kind
from textsim_db.results import Judgement
from textsim_db.results.html import count
from textsim_db.settings.corpus_settings import Verdict

app = typer.Typer(
    no_args_is_help=True, help="List, import and remove what people said of pairs of documents."
)

_VERDICTS = "|".join(Verdict)

FirstKey = Annotated[str, typer.Argument(metavar="A", help="Key of one document.")]
SecondKey = Annotated[str, typer.Argument(metavar="B", help="Key of the other document.")]


def judge(
    corpus: CorpusName,
    a: FirstKey,
    b: SecondKey,
    verdict: Annotated[
        Verdict,
        typer.Argument(
            parser=choice_of(Verdict),
            metavar=_VERDICTS,
            help="Whether both documents are the same for your purpose.",
        ),
    ],
    note: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Why, or anything else, to store with it.")
    ] = None,
    replaces: Annotated[
        Verdict | None,
        choice_option(
            Verdict,
            "Replace the stored judgement of the pair, which has this verdict. Without it a "
            "judgement is never replaced.",
        ),
    ] = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Record what you say of two documents of a corpus.

    `textsim clusters --judgements` and tracked clusters obey it. The documents need not exist, and the
    judgement stays when they change or are removed.

    Examples:
    - `textsim judge news article-17 article-18 same`
    - `textsim judge news article-17 article-19 different --note "another year" --replaces unsure`

    """
    with connect(database_url) as db:
        judged = db.manage(corpus)
        is_new = judged.judge(a, b, verdict, note, replaces=replaces)
        absent = [key for key in (a, b) if key not in judged]
    message = "recorded" if is_new else "recorded already"
    print_result(message, corpus=corpus, a=a, b=b, verdict=verdict, is_new=is_new)
    for key in absent:
        print_message(f'the corpus has no document "{shown(key)}" now')


@app.command("list")
def list_(
    corpus: CorpusName, form: FormatOption = Format.TABLE, database_url: DatabaseUrl = None
) -> None:
    """List the judgements of a corpus, in the order of their keys.

    CSV and JSON lines are files that `textsim judgements import` reads.

    Example: `textsim judgements list news --format csv > judgements.csv`
    """
    with connect(database_url) as db:
        judgements = list(db.manage(corpus).judgements())
    missing = None if form is Format.JSONL else ""
    rows = [
        (*judgement[:4], judgement.judged_at.isoformat(), judgement.note or missing)
        for judgement in judgements
    ]
    write(Judgement._fields, rows, form)
    print_message(f"{count(len(rows), 'judgement')} found")


@app.command("import")
def import_(
    corpus: CorpusName,
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="A file of records with the columns, or members in JSON, a and b (two keys), verdict "
            'and, if you like, note; "-" is standard input.',
        ),
    ],
    kind: Annotated[
        Kind, record_kind_option("Format of the file; auto decides by its name.")
    ] = Kind.AUTO,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Replace stored judgements that have another verdict or note. Without it, the first of "
            "them is an error.",
        ),
    ] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Record the judgements of a file, all or none.

    Other columns do not count: you are the one who judges, now. It prints how many judgements
    are new, or with --replace new or replaced.

    Example: `textsim judgements import news judgements.csv`
    """
    from textsim_db.files.read_documents import read_judgements

    read = read_judgements(path, kind)
    with connect(database_url) as db:
        new = db.manage(corpus).judge_many(
            (judgement[:4] for judgement in read), replace, place_of=lambda i: read[i].place
        )
    kind_of_new = "new or replaced" if replace else "new"
    print_result(
        f"{count(len(read), 'judgement')} read, {new:,} {kind_of_new}",
        corpus=corpus,
        judgements=len(read),
        new=new,
    )


@app.command()
def remove(corpus: CorpusName, a: FirstKey, b: SecondKey, database_url: DatabaseUrl = None) -> None:
    """Remove the judgement of two documents. Exit status 2 if there is none.

    Example: `textsim judgements remove news article-17 article-18`
    """
    with connect(database_url) as db:
        is_removed = db.manage(corpus).unjudge(a, b)
    message = "removed" if is_removed else "this pair is not judged"
    print_result(message, corpus=corpus, a=a, b=b, is_removed=is_removed)
    if not is_removed:
        raise typer.Exit(2)
