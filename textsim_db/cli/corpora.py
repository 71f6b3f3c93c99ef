"""textsim corpus create, list, show and drop, and rebuild."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textsim_db.cli.common import (
    CorpusName,
    DatabaseUrl,
    Yes,
    complain,
    confirm,
    connect,
    count,
    number,
    of_each,
    shown,
    whole_number,
)
from textsim_db.cli.output import Format, FormatOption, Setting, cell, console, table, write
from textsim_db.cli.progress import counting
from textsim_db.errors import CorpusExists, RecipeError

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.settings import CorpusConfig

app = typer.Typer(no_args_is_help=True, help="Create, list, show and drop corpora.")

_SHOWN_WORDS = 10
_PANEL = "Configuration of a new corpus"
Shingle = Annotated[
    str | None,
    typer.Option(
        help='The unit of comparison: "word:N" or "char:N", N of them in a row; "word:1" is the bag '
        'of words. Default: "word:3".',
        rich_help_panel=_PANEL,
    ),
]
CorpusThreshold = Annotated[
    float | None,
    typer.Option(
        parser=number,
        metavar="NUMBER",
        help="The similarity from which documents match. Default: 0.8.",
        rich_help_panel=_PANEL,
    ),
]
Recall = Annotated[
    float | None,
    typer.Option(
        parser=number,
        metavar="NUMBER",
        help="The probability that a pair exactly at the threshold is found, below 1. "
        "Default: 0.95.",
        rich_help_panel=_PANEL,
    ),
]
NumHashes = Annotated[
    int | None,
    typer.Option(
        parser=whole_number,
        metavar="NUMBER",
        help="Values in a signature. Default: 128.",
        rich_help_panel=_PANEL,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        parser=whole_number,
        metavar="NUMBER",
        help="Seed of the hash functions. Default: 1.",
        rich_help_panel=_PANEL,
    ),
]
Bands = Annotated[
    int | None,
    typer.Option(
        parser=whole_number,
        metavar="NUMBER",
        help="Buckets of a document, with --rows: instead of --recall.",
        rich_help_panel=_PANEL,
    ),
]
Rows = Annotated[
    int | None,
    typer.Option(
        parser=whole_number,
        metavar="NUMBER",
        help="Signature values in a bucket, with --bands.",
        rich_help_panel=_PANEL,
    ),
]
StopWords = Annotated[
    str | None,
    typer.Option(
        "--stop-words",
        metavar="LANGUAGE|auto|PATH",
        help='Leave words out of every text: those of a language, such as "en", "auto" for those of '
        "the text's own, or of a file with one on each line. Default: none.",
        rich_help_panel=_PANEL,
    ),
]
Language = Annotated[
    str | None,
    typer.Option(
        "--language",
        metavar="auto",
        help='"auto": identify the language of each document, to limit searches to one.',
        rich_help_panel=_PANEL,
    ),
]


def chosen_stop_words(choice: str | None) -> str | tuple[str, ...] | None:
    """Return the stop words of a language or a file."""
    if choice in (None, "auto"):
        return choice
    from textsim_db.files.read_documents import read_text
    from textsim_db.text.stop_words import stop_words

    is_file = "." in choice or "/" in choice
    return stop_words(read_text(choice).splitlines() if is_file else choice)


def check(settings: dict[str, Any]) -> None:
    """Raise ConfigurationError unless a corpus can be made with these settings."""
    from textsim_db.settings import make_config
    from textsim_db.text.stop_words import with_lists

    make_config(**with_lists(settings))


def given(**settings: Any) -> dict[str, Any]:
    """Return the settings that were given, so that the library's defaults hold for the others."""
    return {name: value for name, value in settings.items() if value is not None}


def check_settings(corpus: Corpus, settings: dict[str, Any]) -> None:
    """Raise CorpusExists unless the corpus is what these settings would make."""
    from textsim_db.settings import differing_settings
    from textsim_db.text.stop_words import with_lists

    if differing := differing_settings(corpus.config, with_lists(settings)):
        raise CorpusExists(f'corpus "{corpus.name}" exists with other settings: {differing}')


@app.command()
def create(
    corpus: CorpusName,
    shingle: Shingle = None,
    threshold: CorpusThreshold = None,
    recall: Recall = None,
    num_hashes: NumHashes = None,
    seed: Seed = None,
    bands: Bands = None,
    rows: Rows = None,
    stop_words: StopWords = None,
    language: Language = None,
    exist_ok: Annotated[
        bool,
        typer.Option("--exist-ok", help="Accept a corpus that exists with this configuration."),
    ] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Create a corpus and show what was chosen.

    Example: `textsim corpus create news --shingle word:3 --threshold 0.8`
    """
    settings = given(
        shingle=shingle,
        threshold=threshold,
        recall=recall,
        num_hashes=num_hashes,
        seed=seed,
        bands=bands,
        rows=rows,
        stop_words=chosen_stop_words(stop_words),
        language=language,
    )
    with connect(database_url) as db:
        if exist_ok and corpus in db.corpora():
            made = db.corpus(corpus)
            check_settings(made, settings)
        else:
            made = db.create_corpus(corpus, exist_ok=exist_ok, **settings)
        _show(made)


@app.command("list")
def list_(form: FormatOption = Format.TABLE, database_url: DatabaseUrl = None) -> None:
    """List the corpora."""
    rows = []
    with connect(database_url) as db:
        for corpus, documents in of_each(db, None, len):
            config = corpus.config
            rows.append((corpus.name, documents, str(config.shingle), Setting(config.threshold)))
    if not write(("corpus", "documents", "shingle", "threshold"), rows, form):
        complain("no corpus; create one with: textsim corpus create NAME")


@app.command()
def show(
    corpus: CorpusName, form: FormatOption = Format.TABLE, database_url: DatabaseUrl = None
) -> None:
    """Show the configuration of a corpus, and how likely similar documents are found."""
    with connect(database_url) as db:
        opened = db.corpus(corpus)
        if form is Format.TABLE:
            _show(opened)
        else:
            settings = {**_settings(opened), "documents": len(opened)}
            write(tuple(settings), [tuple(settings.values())], form)


@app.command()
def drop(corpus: CorpusName, yes: Yes = False, database_url: DatabaseUrl = None) -> None:
    """Remove a corpus with all its documents."""
    with connect(database_url) as db:
        try:
            documents = f" with {count(len(db.corpus(corpus)), 'document')}"
        except RecipeError:  # it cannot be opened, but it can go
            documents = ""
        confirm(f'remove the corpus "{corpus}"{documents}', yes)
        db.drop_corpus(corpus)
    complain(f'removed the corpus "{corpus}"{documents}')


def rebuild(
    corpus: CorpusName,
    shingle: Shingle = None,
    threshold: CorpusThreshold = None,
    recall: Recall = None,
    num_hashes: NumHashes = None,
    seed: Seed = None,
    bands: Bands = None,
    rows: Rows = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Build a corpus anew with other settings, while it is used; those not given stay.

    Searches and writers use the old one until the new one is complete; then it takes the old one's
    place in one transaction, with the attached tables. It needs room for both until then.

    Example: `textsim rebuild news --threshold 0.7 --num-hashes 256`
    """
    settings = given(
        shingle=shingle,
        threshold=threshold,
        recall=recall,
        num_hashes=num_hashes,
        seed=seed,
        bands=bands,
        rows=rows,
    )
    if not settings:
        raise typer.BadParameter("say what to change, such as --threshold 0.7", param_hint="CORPUS")
    with connect(database_url) as db:
        opened = db.corpus(corpus)
        start = time.monotonic()
        with counting("rebuilding", "documents") as progress:
            rebuilt = opened.rebuild(**settings, progress=progress)
        if not rebuilt:
            complain(f'the corpus "{corpus}" has these settings already')
            return
        seconds, documents = time.monotonic() - start, len(opened)
        complain(
            f'rebuilt the corpus "{corpus}" with {count(documents, "document")}; {seconds:.1f} s',
            corpus=corpus,
            documents=documents,
            seconds=round(seconds, 3),
        )
        _show(opened)


def _settings(corpus: Corpus) -> dict[str, Any]:
    config = corpus.config
    names = ("threshold", "recall", "num_hashes", "bands", "rows", "seed", "recipe")
    chosen = {name: getattr(config, name) for name in names}
    left_out = "auto" if config.stop_words_by_language else " ".join(config.stop_words)
    return {
        "corpus": corpus.name,
        "shingle": str(config.shingle),
        **chosen,
        "stop_words": left_out,
        "language": config.language,
    }


def _show(corpus: Corpus) -> None:
    from rich.text import Text

    settings = {**_settings(corpus), "documents": f"{len(corpus):,}"}
    words = corpus.config.stop_words
    if len(words) > _SHOWN_WORDS:
        more = len(words) - _SHOWN_WORDS
        settings["stop_words"] = f"{' '.join(words[:_SHOWN_WORDS])} and {more:,} more"
    for name in ("stop_words", "language"):
        settings[name] = settings[name] or "none"
    lines = (f"{name.replace('_', ' '):<12}{_plain(value)}" for name, value in settings.items())
    out = console()
    out.print(Text("\n".join(lines)))
    out.print()
    out.print(table(("similarity", "found with probability"), _probabilities(corpus.config)))


def _plain(value: object) -> str:
    return cell(Setting(value)) if isinstance(value, float) else shown(str(value))


def _probabilities(config: CorpusConfig) -> list[tuple[Setting, float]]:
    similarities = sorted({0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, config.threshold})
    return [(Setting(s), config.banding.probability(s)) for s in similarities]
