"""textsim warm: compile all kernels once, by using them on a few small texts."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from textsim_db.cli.messages import SEARCHES, print_message, print_result
from textsim_db.cli.opening import connect
from textsim_db.cli.progress_lines import progress
from textsim_db.errors import CorpusNotFound
from textsim_db.results.shown_values import count
from textsim_db.settings.corpus_settings import CorpusSettings
from textsim_db.settings.named_values import Linkage

if TYPE_CHECKING:
    from textsim_db.corpus import Corpus
    from textsim_db.corpus.database import Database

    Use = Callable[[Database], None]

_SENTENCES = (
    "The quick brown fox jumps over the lazy dog near the bank of the river.",
    # NFKC changes this one.
    "A \ufb01ne cafe\u0301 opens on Monday, and the council decided to rebuild the old bridge.",
    "Farmers of our valley sell apples, cheese and bread from eight in the morning until noon.",
)
_COPIES = 400
"""Near-duplicates to index: they make large buckets, and an exact corpus learns from them."""
_SETTINGS = (
    CorpusSettings(is_unique=True),
    CorpusSettings(recall=1, is_unique=True),
    CorpusSettings(shingle="char:5"),
    CorpusSettings(shingle="char:5", recall=1),
    CorpusSettings(stop_words=("the",), guards=("numbers",)),
    CorpusSettings(boilerplate=0.5, boilerplate_values=(0,)),
)
_WITH_PASSAGES = (CorpusSettings(passages=5), CorpusSettings(shingle="char:5", passages=20))
_OF_LANGUAGES = (CorpusSettings(language="auto"), CorpusSettings(stop_words="auto"))


def warm(*, database_url: str | None = None) -> None:
    """Compile all kernels, once for an installation, so that no later command has to.

    It indexes and searches a few small texts in temporary corpora, which it drops. If all kernels are
    compiled already, it only reports that. The role needs the right to create corpora.

    Example: `textsim warm`
    """
    compile_kernels(database_url, print_result)


def compile_kernels(database_url: str | None, show: Callable[..., None] = print_message) -> None:
    """Use every kernel on a few texts, unless this installation has done so already."""
    from textsim_db.base import numba_compiler

    if numba_compiler.are_compiled():
        show("all kernels are compiled", kernels=0)
        return
    print_message("compiling all kernels, once for this installation")
    start = time.perf_counter()
    with connect(database_url) as db:
        compiled = _use_each(db, list(_uses()))
    numba_compiler.note_compiled()
    seconds = time.perf_counter() - start
    message = f"compiled {count(compiled, 'kernel')}; {seconds:.1f} s"
    show(message, kernels=compiled, seconds=round(seconds, 3))


def _use_each(db: Database, uses: list[Use]) -> int:
    from textsim_db.base.numba_compiler import watch_compiler

    with progress("compiling", "kernels") as show, _without_advice():
        compiled = done = 0

        def after_each() -> None:
            nonlocal compiled
            compiled += 1
            show(compiled, share=done / len(uses))

        with watch_compiler(after_each):
            for use in uses:
                use(db)
                done += 1
    return compiled


@contextmanager
def _without_advice() -> Iterator[None]:
    """Log no advice on what the searches can miss."""
    advice = logging.getLogger(SEARCHES)
    was_disabled, advice.disabled = advice.disabled, True
    try:
        yield
    finally:
        advice.disabled = was_disabled


def _uses() -> Iterator[Use]:
    for settings in (CorpusSettings(), CorpusSettings(recall=1)):
        yield partial(_use_all, settings=settings)
    for settings in _SETTINGS:
        yield partial(_use_corpus, settings=settings)
    for settings in _WITH_PASSAGES:
        yield partial(_use_passages, settings=settings)
    if find_spec("py3langid") and find_spec("stopwordsiso"):  # the extra languages
        for settings in _OF_LANGUAGES:
            yield partial(_use_corpus, settings=settings)
        yield _use_languages
    yield _use_memory
    yield _use_others


@contextmanager
def temporary_corpus(db: Database, settings: CorpusSettings) -> Iterator[Corpus]:
    from textsim_db.db import stored_corpus
    from textsim_db.text.stop_words import with_lists
    from textsim_db.write.temporary_corpora import temporary_name

    with temporary_name(db.engine) as name:
        try:
            stored_corpus.create(db.engine, name, with_lists(settings).complete())
            yield db.corpus(name)
        finally:
            with suppress(CorpusNotFound):
                stored_corpus.drop_named(db.engine, name)


def _texts() -> tuple[str, ...]:
    """Return near-duplicates that make large buckets of few words, and some other texts."""
    words = " ".join(_SENTENCES).split()
    choose = random.Random(1).choices  # noqa: S311 - nothing secret
    begin = " ".join(choose(words, k=150))
    copies = (f"{begin} {' '.join(choose(words, k=2))}" for _ in range(_COPIES))
    return (*_SENTENCES, "", *copies)


@contextmanager
def _corpus(db: Database, settings: CorpusSettings) -> Iterator[Corpus]:
    with temporary_corpus(db, settings) as corpus:
        corpus.add_many((str(number), text) for number, text in enumerate(_texts()))
        yield corpus


def _use_memory(_: Database) -> None:
    from textsim_db.cluster.keep_rule import Preference
    from textsim_db.dedupe.removals import Document, Rule, deduplicate

    for settings in (CorpusSettings(), CorpusSettings(recall=1)):
        for linkage in Linkage:
            rule = Rule(Preference.parse("first"), settings.complete(), linkage)
            deduplicate(map(Document, _texts()), rule)


def _use_corpus(db: Database, settings: CorpusSettings) -> None:
    text = _SENTENCES[0]
    with _corpus(db, settings) as corpus:
        if settings.is_unique:
            corpus.add_unique("unique", text)
        else:
            corpus.add("single", text)
            list(corpus.pairs())
        corpus.query(text)
        corpus.check()


def _use_passages(db: Database, settings: CorpusSettings) -> None:
    text = _SENTENCES[0]
    with _corpus(db, settings) as corpus:
        corpus.passages(text)
        list(corpus.shared_passages())
        corpus.check()
        if str(settings.shingle).startswith("word"):
            corpus.regions(text)
            corpus.quote(text)


def _use_all(db: Database, settings: CorpusSettings) -> None:
    from textsim_db.measures.by_name import MEASURES

    text = _SENTENCES[0]
    with _corpus(db, settings) as corpus:
        corpus.add("single", text)
        for measure in MEASURES:
            corpus.query(text, 1.0, measure=measure)
        corpus.query_many([text, ""])
        corpus.neighbours("1")
        corpus.candidates(text)
        corpus.explain("1", "2")
        list(corpus.pairs())
        for linkage in Linkage:
            list(corpus.clusters(linkage=linkage))
        list(corpus.duplicates())
        corpus.measure_recall()
        corpus.statistics()
        corpus.check()
        corpus.rebuild(seed=2)
        corpus.remove(["1"])


def _use_languages(_: Database) -> None:
    from textsim_db.text.languages import identify_languages

    identify_languages(_SENTENCES)


def _use_others(db: Database) -> None:
    """Use the kernels of the installation, of the measures, and of corpora with millions of words."""
    import numpy as np

    from textsim_db import measures
    from textsim_db.compare.packed_pairs import same_anywhere
    from textsim_db.sketch.fast_similarity import hash_bands
    from textsim_db.text.hashing import hash_texts
    from textsim_db.text.tokens import tokens_of
    from textsim_db.text.word_cache import WordCache

    measures.edit_table(*_SENTENCES[:2])
    measures.levenshtein(*_SENTENCES[:2], substitution=1.5)
    hash_texts(_SENTENCES)
    hash_bands(np.zeros((1, 4), np.int16), 2, 2)
    same_anywhere(np.zeros((1, 1), np.int16), *(np.zeros(1, np.int64) for _ in range(2)))
    words = tokens_of([" ".join(map(str, range(5000))).encode()])
    WordCache().add(words, np.arange(1, 5001, dtype=np.int32))
