"""textsim judge, doubtful, judgements and review: what people say of pairs of documents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import TYPE_CHECKING

import typer

from textsim_db.cli import options
from textsim_db.cli.messages import print_message, print_result
from textsim_db.cli.opening import connect
from textsim_db.cli.operations import Call, Operation, operation_command
from textsim_db.cli.options import check_output
from textsim_db.cli.output import Format, write
from textsim_db.errors import InputError, needs_extra
from textsim_db.files.file_kinds import FileFormat
from textsim_db.results import Judgement
from textsim_db.results.shown_values import count, shown
from textsim_db.settings.named_values import VerdictName

if TYPE_CHECKING:
    from textsim_db.review.survey import Reviewed

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
app.command("list")(operation_command(LIST))


@app.command("import")
def import_(
    corpus: str,
    path: str,
    /,
    *,
    form_of_files: FileFormat,
    replace: bool = False,
    database_url: str | None = None,
) -> None:
    """Record the judgements of a file, all or none.

    You are the one who judges, now. A file of textsim judgements list says which texts were judged, so a
    judgement of texts that have changed since is stale; without these columns the present texts are.
    Other columns do not count. It prints how many judgements are new, or with --replace new or replaced.

    Args:
        path: A file of records with the columns, or members in JSON, a and b (two keys), verdict and, if
            you like, note, source, confidence, hash_a and hash_b; "-" is standard input.
        kind (auto|jsonl|csv|tsv|parquet): Format of the files of records; auto decides by their names.
        replace: Replace stored judgements that have another verdict, note, source or confidence. Without
            it, the first of them is an error.

    Example: `textsim judgements import news judgements.csv`
    """
    from textsim_db.files.judgement_files import read_judgements

    read = read_judgements(path, form_of_files)
    with connect(database_url) as db:
        new = db.corpus(corpus, on_server=True)._judge_many(
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
def cluster(report: str, key: str, verdict: VerdictName, /) -> None:
    """Write the judgements of a whole cluster, which a report names, as JSON lines.

    Append them to the file that `textsim dedupe --judgements` obeys, or pipe them to `textsim judgements
    import CORPUS -`.

    Args:
        report: A file that `textsim dedupe --report` or `textsim clusters --format jsonl` wrote.
        key: The key of a record of the cluster.
        verdict: The verdict on every two of its records.

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
    if None in found:
        raise InputError(
            f'a record of the cluster of "{shown(key)}" has no key by which it can be judged: name its '
            "member with the key by --key of textsim dedupe"
        )
    pairs = combinations(dict.fromkeys(found), 2)
    write(("a", "b", "verdict"), ((a, b, verdict) for a, b in pairs), Format.JSONL)


def _keys_of(line: bytes) -> list[str | None]:
    cluster = json.loads(line)
    if "removed" in cluster:
        members = cluster["kept"], *cluster.get("also_kept", ()), *cluster["removed"]
        return [each["key"] for each in members]
    return list(cluster["keys"])


app.command("remove")(operation_command(REMOVE))


_OPEN_PATIENCE = 10
"""Seconds that the address waits for the first pairs."""


def review(
    corpus: str | None = None,
    /,
    *,
    source: str | None = None,
    report: str | None = None,
    input_: list[str] | None = None,
    form_of_files: FileFormat,
    glob: str = "*",
    text: str = "text",
    key: str | None = None,
    scope_columns: list[str] | None = None,
    judgements: str | None = None,
    threshold: float | None = None,
    doubtful: bool = False,
    port: int = 0,
    no_browser: bool = False,
    read_only: bool = False,
    database_url: str | None = None,
) -> None:
    """Look at pairs and clusters in a browser, and judge them.

    They are those of a corpus, of an attached table, or of a finished `textsim dedupe`. It prints the
    address of the pages, which only this machine can open, and serves them until you press Ctrl-C. With
    the address anybody can judge under your name: do not pass it on.

    Args:
        corpus: Name of the corpus. Not needed with --source, nor with --report.
        source (TABLE): Show the pairs of this attached table only.
        report: Show the clusters of a report that textsim dedupe has written.
        input (PATH): With --report: a file or a folder that dedupe has read. Repeat it for each INPUT.
        kind (auto|jsonl|csv|tsv|parquet): Format of the files of records; auto decides by their names.
        text (COLUMN): With --input: column or member with the text.
        key (COLUMN): With --input: column or member with the key. Default: id if it exists.
        judgements (PATH): With --report: the file of judgements, JSON lines. Default: the name of the
            report with .judgements.jsonl in the place of .jsonl.
        threshold: Least similarity of a result: above 0, at most 1. Default: the corpus's threshold.
            Below it some similar documents are missed: textsim corpus list NAME prints the share.
        doubtful: Begin with the matches below unique_from that nobody has judged.
        port: Listen on this port; 0 is any free port.
        no_browser: Do not open a browser; open the address yourself.
        read_only: Show everything, and record no judgement.

    Examples:
    - `textsim review news`
    - `textsim review news --threshold 0.6 --no-browser --port 8080`
    - `textsim review news --doubtful`
    - `textsim review --source article`
    - `textsim review --report clusters.jsonl --input articles.jsonl.gz`

    """
    _check_usage(corpus, source, report, input_, judgements)
    with needs_extra("review", "the pages need Starlette and Uvicorn"):
        from textsim_db.review.server import Review, serve

    def show(address: str) -> None:
        typer.echo(address)
        print_message("press Ctrl-C to end")

    opened = (
        _report(
            report,
            input_,
            glob,
            form_of_files,
            (text, key, scope_columns or ()),
            judgements,
            threshold,
        )
        if report is not None and input_ is not None
        else _corpus(corpus, source, threshold, database_url)
    )
    with opened as reviewed:
        if doubtful and reviewed.unique_from is None:
            raise options.misused("--doubtful", "the corpus has no unique_from")
        pages = Review(reviewed, read_only)
        pages.survey.start()
        try:
            # The kernels are loaded meanwhile, so the first page comes at once.
            pages.survey.wait_for_some(_OPEN_PATIENCE)
            first = "pairs?state=doubtful" if doubtful else ""
            serve(pages.app(), port, not no_browser, show, first)
        finally:
            pages.survey.stop()
    print_message("ended")


def _check_usage(
    corpus: str | None,
    source: str | None,
    report: str | None,
    records: list[str] | None,
    judgements: str | None,
) -> None:
    if (report is None) != (records is None):
        raise options.misused("--report", "--report and --input need each other")
    if report is not None and (corpus or source):
        raise options.misused("--report", "it takes neither a corpus nor --source")
    if report is None and judgements is not None:
        raise options.misused("--judgements", "it needs --report; a corpus has its own")
    if corpus is None and source is None and report is None:
        raise options.misused("CORPUS", "name a corpus, or give --source or --report")


@contextmanager
def _corpus(
    name: str | None, table: str | None, threshold: float | None, database_url: str | None
) -> Iterator[Reviewed]:
    from textsim_db.review.corpus_documents import CorpusDocuments, attached_source

    with connect(database_url, is_brief=False) as db:
        source = None if table is None else attached_source(db.sources(), table, name)
        corpus = db.corpus(source.corpus if source is not None else str(name))
        yield CorpusDocuments(corpus, threshold, source)


@contextmanager
def _report(
    report: str,
    records: list[str],
    glob: str,
    form: FileFormat,
    columns: tuple[str, str | None, Sequence[str]],
    judgements: str | None,
    threshold: float | None,
) -> Iterator[Reviewed]:
    from textsim_db.files.record_files import RecordColumns
    from textsim_db.files.several_files import RecordFiles, record_files
    from textsim_db.review.report_documents import ReportDocuments

    text, key, scope = columns
    path = judgements or f"{report.removesuffix('.jsonl')}.judgements.jsonl"
    if not path.endswith(".jsonl"):
        raise options.misused("--judgements", f"{path} does not end in .jsonl")
    names = record_files(records, glob, form.kind)
    read = [("--report", report), *(("--input", name) for name in names)]
    check_output("--judgements", path, read)
    wanted = RecordColumns(text, key or "id", None, key is not None, scope)
    with (
        RecordFiles(names, wanted, form) as file,
        ReportDocuments(report, file, path, threshold) as reviewed,
    ):
        yield reviewed
