"""textsim plan: bands and rows to choose from, and the measured recall of a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from textsim_db.cli import options, output
from textsim_db.cli.declare import with_settings
from textsim_db.cli.messages import print_message
from textsim_db.cli.opening import connect
from textsim_db.cli.operations import note_unknown_scope
from textsim_db.cli.progress_lines import progress
from textsim_db.results.shown_values import count, shown
from textsim_db.settings.choose_bands import Bands
from textsim_db.settings.corpus_settings import DEFAULTS, CorpusSettings

if TYPE_CHECKING:
    from textsim_db.results import RecallReport
    from textsim_db.sketch.plan_options import Option

_BANDINGS_AROUND = 3
"""The table shows this many bandings before and after the chosen banding."""
_SHOWN_LINES = 10
_SHORTEST_TEXT = 20
"""The characters of the shortest text, if nobody says."""
_SHOWN_LENGTHS = (10, 20, 40, 80)
"""The table of edits shows the lowest similarity of texts of these numbers of characters."""
_CHOOSING = ("threshold", "recall", "num_hashes")
"""The settings from which bands and rows follow."""


@with_settings(*(*_CHOOSING, "passages"), default="{}, or the corpus's own", panel=None)
def plan(
    corpus: str | None = None,
    /,
    *,
    settings: options.PartialSettings,
    documents: int = 1_000_000,
    words: float = 200,
    sample: int = 1000,
    seed: int | None = None,
    scope: str | None = None,
    edits: int | None = None,
    characters: int | None = None,
    plot: str | None = None,
    form: output.Format = output.Format.TABLE,
    database_url: str | None = None,
) -> None:
    """Show how many similar documents bands and rows find and what they cost; or measure a corpus.

    Without CORPUS it prints the possible bandings: the probability that a pair becomes a candidate,
    the bytes of a document, and the expected candidates; with --passages also the fingerprints of a
    document. With CORPUS it compares a sample of the documents with all documents by brute force, and
    prints the recall and the missed pairs.

    An edit replaces, inserts or removes a character of a normal form. With --edits it prints the lowest
    similarity of texts with this many edits, for texts of several lengths. An exact corpus with this
    threshold finds all of them. A text that repeats itself counts as a shorter one. A change between a
    character of a script without spaces, such as Chinese, and a letter of another one is up to three
    edits, because spaces stand around the letter.

    The table has the bandings near the chosen banding; JSON lines and CSV have every banding. The
    probabilities follow a formula. If the formula gives 20 to 60 %, up to 1.3 percentage points fewer
    pairs are found.

    Args:
        corpus: Measure this corpus. Default: compute, for a corpus to come.
        documents: Without a corpus: the expected number of documents.
        words: Without a corpus: words of a document.
        sample: With a corpus: compare this many documents with all documents.
        seed: With a corpus: seed of the sample. Default: a random seed.
        scope: Search the documents of this scope only. A scoped corpus requires it.
        edits: Without a corpus: choose the threshold that finds every text with this many edits.
        characters: With --edits: the characters of the shortest text. Default: 20.
        plot: Draw the S-curve to a file ending in .svg or .png.

    Examples:
    - `textsim plan --threshold 0.7 --recall 0.99 --plot curve.svg`
    - `textsim plan news --sample 2000`
    - `textsim plan --edits 1 --characters 30`

    """
    options.check_plot(plot)
    if edits is not None:
        if corpus is not None or settings or plot is not None:
            raise options.misused("--edits", "it takes no CORPUS, no settings and no --plot")
        _show_edits(edits, _SHORTEST_TEXT if characters is None else characters, form)
        return
    if characters is not None:
        raise options.misused("--characters", "only for --edits")
    if corpus is None:
        result = _plan_corpus_to_come(settings, words, documents)
    else:
        chosen = {"sample": sample, "seed": seed, "scope": scope}
        result = _plan_existing_corpus(corpus, settings, chosen, database_url)
    if plot is not None:  # first, because a program that reads the output may end the command
        _draw_curves(plot, result)
    if result.report is not None:
        _write_report(result.report, result.banding, form)
    _write_options(result.choices, result.threshold, form)
    if form is output.Format.TABLE and result.banding is None:
        output.console().print(f"exact: every pair at {result.exact_from:g} or more is found")
    if result.missed is not None:
        print_message(f"warning: {result.missed}")


def _show_edits(edits: int, characters: int, form: output.Format) -> None:
    from textsim_db.sketch.plan_options import lowest_similarity, plan_edits

    choices = plan_edits(edits, characters)
    lengths = sorted({*_SHOWN_LENGTHS, characters})
    columns = ["shingle", *(f"at {length}" for length in lengths), "threshold"]
    columns += ["band rows/document", "bytes/document", "chosen"]
    rows: list[Sequence[Any]] = []
    for each in choices:
        lowest = [lowest_similarity(edits, length, each.n) for length in lengths]
        mark = ("yes" if each.chosen else "") if form is output.Format.TABLE else each.chosen
        threshold = output.Setting(each.threshold)
        rows.append((f"char:{each.n}", *lowest, threshold, each.band_rows, each.storage, mark))
    output.write(columns, rows, form)
    chosen = next(each for each in choices if each.chosen)
    print_message(
        f"--shingle char:{chosen.n} --threshold {chosen.threshold:g} --recall 1 finds every text with "
        f"{count(edits, 'edit')}, if one of the two has {chosen.least_shingles} distinct shingles or "
        "more"
    )


class _Plan(NamedTuple):
    choices: list[Option]
    banding: Bands | None
    """None: an exact corpus."""
    threshold: float
    exact_from: float
    """In an exact corpus, the similarity from which every pair is found."""
    missed: str | None = None
    """Which share of the pairs is found, if it is low."""
    report: RecallReport | None = None
    """The measurement of an existing corpus."""


def _plan_corpus_to_come(settings: options.PartialSettings, words: float, documents: int) -> _Plan:
    from textsim_db.sketch import plan_options

    choices = plan_options.plan(**settings, words=words, documents=documents)
    best = next(option for option in choices if option.chosen)
    threshold = settings.get("threshold", DEFAULTS.threshold)
    chosen = {name: settings[name] for name in _CHOOSING if name in settings}
    missed = CorpusSettings(**chosen).complete().many_missed()
    return _Plan(choices, best.banding, threshold, threshold, missed)


def _plan_existing_corpus(
    corpus: str, settings: options.PartialSettings, chosen: dict[str, Any], database_url: str | None
) -> _Plan:
    from textsim_db.read.measure_recall import measured_options
    from textsim_db.sketch import plan_options

    with connect(database_url) as db:
        opened = db.corpus(corpus)
        threshold, recall, num_hashes = (
            settings.get(name, getattr(opened.config, name)) for name in _CHOOSING
        )
        plan_options.choose(threshold, recall, num_hashes)  # raises before the long comparison
        with progress("comparing", "documents") as show:
            report = opened.measure_recall(threshold, progress=show, **chosen)
        if not report.documents:
            note_unknown_scope(opened, chosen["scope"])
    config = opened.config
    passages = settings.get("passages", config.passages)
    choices = measured_options(report, recall, num_hashes, passages, config.shingle.unit)
    return _Plan(choices, config.banding, threshold, config.threshold, config.many_missed(), report)


def _draw_curves(path: str, result: _Plan) -> None:
    from textsim_db.sketch import recall_plots

    near = [option.banding for option in _near(result.choices) if option.banding is not None]
    first = [result.banding] if result.banding is not None else []
    bandings = first + [banding for banding in near if banding != result.banding]
    recall_plots.s_curve(path, bandings, result.threshold, result.report)
    print_message(f"drawn: {shown(path)}")


def _near(choices: list[Option]) -> list[Option]:
    """Return the exact option and the bandings around the chosen one, or around the default's."""
    exact, *bandings = choices
    chosen = [i for i, option in enumerate(bandings) if option.chosen]
    likely = [i for i, option in enumerate(bandings) if option.recall >= DEFAULTS.recall]
    place = (chosen or likely[-1:] or [0])[0]
    return [exact, *bandings[max(0, place - _BANDINGS_AROUND) : place + _BANDINGS_AROUND + 1]]


def _write_options(choices: list[Option], threshold: float, form: output.Format) -> None:
    if form is output.Format.TABLE:
        choices = _near(choices)
    similarities = sorted({0.3, 0.5, 0.7, 0.9, threshold})
    columns = ["bands", "rows", *(f"found at {s:g}" for s in similarities)]
    has_passages = any(option.fingerprints for option in choices)
    columns += ["band rows/document", *(["fingerprints/document"] if has_passages else [])]
    columns += ["bytes/document", "candidates/document", "chosen"]
    rows: list[Sequence[Any]] = []
    for option in choices:
        probabilities = [option.probability(s) for s in similarities]
        candidates = output.Setting(float(f"{option.candidates:.3g}"))
        mark = ("yes" if option.chosen else "") if form is output.Format.TABLE else option.chosen
        bands: Any = option.bands
        if option.banding is None and form is output.Format.TABLE:
            bands = "exact"
        fingerprints = (option.fingerprints,) if has_passages else ()
        costs = (option.band_rows, *fingerprints, option.storage, candidates)
        rows.append((bands, option.rows, *probabilities, *costs, mark))
    output.write(columns, rows, form)


def _write_report(report: RecallReport, banding: Bands | None, form: output.Format) -> None:
    """Print the measurement; on standard error if standard output is for a program."""
    lines = _lines(report, banding)
    if form is not output.Format.TABLE:
        for line in lines:
            print_message(line)
        return
    from rich.text import Text

    out = output.console()
    out.print(Text("\n".join(lines)))
    out.print(output.table(("similarity", "pairs"), output.tenths(report.histogram)))
    if report.missed:
        missed = [(pair.similarity, pair.a, pair.b) for pair in report.missed[:_SHOWN_LINES]]
        title = f"missed pairs, which share no bucket ({len(report.missed):,} in all)"
        out.print(output.table(("similarity", "a", "b"), missed, title))
    if report.lost:
        keys = ", ".join(f'"{shown(key)}"' for key in report.lost[:_SHOWN_LINES])
        rest = ", ..." if len(report.lost) > _SHOWN_LINES else ""
        out.print(Text(f"documents without any similar document found: {keys}{rest}\n"))


def _lines(report: RecallReport, banding: Bands | None) -> list[str]:
    candidates = report.candidates or [0]
    mean = sum(candidates) / len(candidates)
    kind = "exact" if banding is None else f"{banding.bands} bands of {banding.rows} rows"
    left_out = f"; {report.empty:,} without words left out" if report.empty else ""
    lines = [
        f"{count(report.sampled, 'document')} of {report.documents:,}, compared with all documents; "
        f"{report.words:.0f} words on average{left_out}",
        f"{kind}, threshold {report.threshold:g}",
        f"candidates of a document: {mean:.3g} on average, "
        f"median {candidates[len(candidates) // 2]:,}, {candidates[-1]:,} at most",
    ]
    if report.shingle is not None:
        lines.append(
            f"most words are characters of a script without spaces: {report.shingle} compares them "
            f"about as word:3 compares words; to change: textsim rebuild --shingle {report.shingle}"
        )
    if report.recall is None:
        lines.append("the sample has no pair of similar documents, so the recall is unknown")
        return lines
    low, high = report.interval
    if banding is None and report.promised == 1:  # no pair is below the threshold of the corpus
        pairs = f"{report.candidate_pairs:,} of {count(report.pairs, 'pair')}"
        lines.append(f"recall: exact, no pair can be missed; {pairs} found")
        return lines
    lines.append(
        f"recall: {report.recall:.4f} ({report.candidate_pairs:,} of {count(report.pairs, 'pair')}; "
        f"95 % confidence: {low:.4f} to {high:.4f}); the formula gives for these similarities: "
        f"{report.promised:.4f}"
    )
    return lines
