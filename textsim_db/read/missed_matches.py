"""Warnings of searches that may miss matches: the Jaccard similarity of shingles chooses candidates.

A threshold below the threshold of the corpus, or another measure, accepts documents that are no
candidates. The warning says which documents these are, or how many of them are found.
"""

from __future__ import annotations

import logging
import math
import shlex

from textsim_db.compare.verify import Criterion
from textsim_db.db.stored_corpus import StoredCorpus
from textsim_db.measures.by_name import JACCARD
from textsim_db.settings import CorpusConfig
from textsim_db.sketch.fingerprints import PassageShingles, count_units, left_out_runs
from textsim_db.text.tokens import Tokens

log = logging.getLogger(__name__)


def warn_of_misses(
    corpus: StoredCorpus, criterion: Criterion, shingle_count: int | None = None
) -> None:
    """Log a warning if documents that the criterion accepts need not be candidates.

    shingle_count: the distinct shingles of the text; None for several texts, or for all pairs.
    """
    least = criterion.measure.least_jaccard(criterion.threshold)
    # A text without words matches nothing by any measure.
    if shingle_count == 0 or (least is not None and least >= corpus.config.threshold):
        return
    if least is not None:
        message = _below_threshold(corpus, criterion, least)
    else:
        message = (
            f'{criterion.measure.name}: the candidates of corpus "{corpus.name}" are chosen by '
            f"Jaccard similarity: {_by_other_measure(corpus.config, criterion, shingle_count)}"
        )
    log.warning("%s", message, extra={"corpus": corpus.name})


def warn_of_missed_passages(
    corpus: StoredCorpus, tokens: Tokens, shingles: PassageShingles
) -> None:
    """Log a warning if documents that contain a text need not be found by its passages."""
    config = corpus.config
    units = count_units(tokens, config)
    name = f"{config.shingle.noun}s"
    if 0 < units < (config.passages or 0):
        message = (
            f"the text has {units} {name}, and only documents that share {config.passages} "
            f'{name} in a row with it are found in corpus "{corpus.name}"'
        )
    elif left_out_runs(shingles, config):
        command = f"textsim rebuild {shlex.quote(corpus.name)} --common-passages"
        message = (
            f'a part of the text is in very many documents of corpus "{corpus.name}", which are not '
            f"searched for it; to find them: {command}"
        )
    else:
        return
    log.warning("%s", message, extra={"corpus": corpus.name})


def _below_threshold(corpus: StoredCorpus, criterion: Criterion, least: float) -> str:
    config, asked = corpus.config, f"{criterion.threshold:g}"
    where = f'below {config.threshold:g}, the threshold of corpus "{corpus.name}"'
    if criterion.measure is JACCARD:
        return (
            f"threshold {asked} is {where}: {_share(config, least)} of the documents at {asked} are "
            f"found; to find more: textsim rebuild {shlex.quote(corpus.name)} --threshold {asked}"
        )
    outcome = "documents below it may be missed"
    if not config.is_exact:
        outcome = f"{_share(config, least)} of the documents at {least:.3g} are found"
    return f"{criterion.measure.name} {asked} is a Jaccard similarity of {least:.3g}, {where}: {outcome}"


def _by_other_measure(config: CorpusConfig, criterion: Criterion, shingle_count: int | None) -> str:
    if not criterion.measure.finds_parts:
        if config.is_exact:
            return f"documents below {config.threshold:g} may be missed"
        at = config.threshold, config.threshold / 2
        at_threshold, at_half = (_share(config, similarity) for similarity in at)
        return f"{at_threshold} of the documents at {at[0]:g} are found, {at_half} at {at[1]:g}"
    if not config.is_exact:
        return _found_parts(config, shingle_count)
    return _sizes_without_candidates(config, criterion.measure.is_symmetric, shingle_count)


def _found_parts(config: CorpusConfig, shingle_count: int | None) -> str:
    """Say how likely a document that contains the text is found, if it is 2 or 10 times as large.

    A text of n shingles in a document of m shingles has the Jaccard similarity n / m.
    """
    twice, ten_times = (
        f"{times} times the shingles" if shingle_count is None else f"{times * shingle_count:,}"
        for times in (2, 10)
    )
    text = "the text" if shingle_count is None else f"the {shingle_count:,} shingles of the text"
    return (
        f"of the documents that contain {text}, {_share(config, 1 / 2)} are found if they have "
        f"{twice}, and {_share(config, 1 / 10)} if they have {ten_times}"
    )


def _sizes_without_candidates(
    config: CorpusConfig, is_symmetric: bool, shingle_count: int | None
) -> str:
    """Say which documents an exact corpus cannot find: n / m is below the threshold."""
    if shingle_count is None:
        return (
            f"a document with more than {1 / config.threshold:.4g} times the shingles of another text "
            "is not found, even if it contains that text"
        )
    sizes = f"more than {_largest_size(shingle_count, config.threshold):,}"
    contains = f"it contains all {shingle_count:,} of the text"
    if is_symmetric:
        sizes += f" or fewer than {_smallest_size(shingle_count, config.threshold):,}"
        contains = f"one of the two contains the other, and the text has {shingle_count:,}"
    return f"a document with {sizes} shingles is not found, even if {contains}"


def _largest_size(size: int, threshold: float) -> int:
    """Return the largest m with size / m >= threshold, as the check of candidates divides."""
    largest = math.floor(size / threshold)
    while size / (largest + 1) >= threshold:
        largest += 1
    while size / largest < threshold:
        largest -= 1
    return largest


def _smallest_size(size: int, threshold: float) -> int:
    """Return the smallest m with m / size >= threshold."""
    smallest = math.ceil(size * threshold)
    while (smallest - 1) / size >= threshold:
        smallest -= 1
    while smallest / size < threshold:
        smallest += 1
    return smallest


def _share(config: CorpusConfig, similarity: float) -> str:
    """Return the share of the documents of this similarity that become candidates."""
    return f"{min(100 * config.probability(similarity), 99.9):.1f} %"
