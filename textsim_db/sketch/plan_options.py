"""The options of a corpus before it is made: bands or an exact corpus, and shingles that find edits.

Each option has its recall or its threshold, and what it costs: candidates and bytes on disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, sqrt
from statistics import NormalDist
from typing import NamedTuple

from textsim_db.errors import ConfigurationError
from textsim_db.results.shown_values import count
from textsim_db.settings.check_values import as_float, check_count, is_number
from textsim_db.settings.choose_bands import (
    MIN_ROWS,
    Bands,
    expected_fingerprints,
    probability_of,
)
from textsim_db.settings.corpus_settings import DEFAULTS, MAX_PASSAGE, MIN_PASSAGE, CorpusSettings

MAX_WORDS = 10_000_000
BUCKETS = 2**32
"""The values that a bucket may have: the numbers of an int4."""
Z = 1.959963984540054
"""The quantile of the normal distribution for an interval of 95 %."""
_BACKGROUND = 0.05
"""The similarity of two unrelated documents in a plan without a corpus."""
UNRELATED = 0.1
"""Documents below this similarity share only shingles that many documents have."""

# The layout of the pages of PostgreSQL.
_PAGE_BYTES = 8168  # bytes of a page of 8 kB without its header
_LONGEST_ROW = 4080  # bytes; the words of a longer row are stored out of line
_PAGE_FILL = 0.9  # how full the server packs the pages of a B-tree
_FINGERPRINT_FILL = 0.95  # how full the pages of the index on fingerprints are made
_KEY_BYTES = 12  # bytes of an average key
WORD_ARRAY, WORD_BYTES = 24, 4  # bytes of an array of word ids, and of each id
_CHARACTERS = 6  # characters of an average word, with the space after it


class Option(NamedTuple):
    """A number of bands and of rows for a corpus, or an exact corpus, with its recall and its cost."""

    bands: int | None
    """The buckets of a document; None for an exact corpus."""
    rows: int | None
    """The signature values in a bucket; None for an exact corpus."""
    recall: float
    """The probability of finding a pair whose similarity equals the threshold, by the formula.

    Between 0.2 and 0.6 the real recall may be lower by up to 0.013.
    """
    band_rows: int
    """The rows of a document in the band table."""
    storage: int
    """Bytes for a document, all indexes included."""
    candidates: float
    """The expected number of documents to verify for each document."""
    chosen: bool
    """Whether `create_corpus` chooses this option."""
    threshold: float
    """The similarity from which an exact corpus finds every pair."""
    fingerprints: int = 0
    """The fingerprints of a document, each a row; 0 in a corpus without passages."""

    @property
    def banding(self) -> Bands | None:
        """The bands and rows as one value; None for an exact corpus."""
        return None if self.bands is None or self.rows is None else Bands(self.bands, self.rows)

    def probability(self, similarity: float) -> float:
        """Return the probability that a pair of this similarity is found."""
        return probability_of(self.banding, self.threshold, similarity)


class Distribution(NamedTuple):
    """The similarities of the documents of a corpus to one document."""

    similarities: Sequence[float]
    """Some similarities."""
    documents: Sequence[float]
    """The number of documents with each of these similarities."""
    corpus_documents: int
    """The number of documents in the corpus."""

    def candidates(self, banding: Bands) -> float:
        """Return the expected number of candidates for one document.

        Two buckets of unrelated documents are equal with probability 2^-32.
        """
        by_chance = banding.bands**2 * self.corpus_documents / BUCKETS
        return by_chance + sum(
            count * banding.probability(similarity)
            for similarity, count in zip(self.similarities, self.documents, strict=True)
        )

    def exact_candidates(self, threshold: float, shingles: float) -> float:
        """Return the expected number of candidates for one document of an exact corpus.

        A shared shingle is a shared row if it is among the smallest values of both documents, so the
        shared rows follow nearly a binomial distribution, and that nearly a normal one. A candidate
        shares as many rows as shares_enough() asks of two documents of this size. Documents below
        UNRELATED share common shingles only, which come last.
        """
        rows = count_rows_of(shingles, threshold)
        common = ceil(2 * threshold * shingles / (1 + threshold))
        needed = max(1.0, common - (shingles - rows))
        return sum(
            count * (1.0 if similarity >= threshold else _at_least(needed, rows, similarity))
            for similarity, count in zip(self.similarities, self.documents, strict=True)
            if similarity >= UNRELATED
        )


def _at_least(needed: float, rows: float, similarity: float) -> float:
    """Return the probability that two documents of one size share the needed number of rows."""
    share = 2 * similarity / (1 + similarity)
    deviation = sqrt(rows * share * (1 - share))
    return 1 - NormalDist(rows * share, max(deviation, 1e-9)).cdf(needed - 0.5)


def count_rows_of(shingles: float, threshold: float) -> float:
    """Return the band rows of a document in an exact corpus: n - ceil(t n) + 3, or n if that is less."""
    return min(shingles, shingles - ceil(threshold * shingles) + 3)


def plan(
    threshold: float = DEFAULTS.threshold,
    recall: float = DEFAULTS.recall,
    num_hashes: int = DEFAULTS.num_hashes,
    words: float = 200,
    documents: int = 1_000_000,
    passages: int | None = None,
) -> list[Option]:
    """Return an `Option` for an exact corpus, and one for each number of rows from 2 to `num_hashes`.

    - `threshold`, `recall`, `num_hashes`: as in `create_corpus`.
    - `words`: the mean number of words in a document.
    - `documents`: the number of documents in the corpus, of which two have the similarity 0.05.
    - `passages`: as in `create_corpus`, with shingles of words.

    Raises `ConfigurationError` if a value is out of range, or if no banding reaches the recall.

        >>> [(o.bands, o.rows) for o in plan(threshold=0.8, recall=0.95) if o.chosen]
        [(18, 7)]
    """
    check_count(documents, "documents", 0, 2**63 - 1)
    distribution = Distribution([_BACKGROUND], [documents], documents)
    if passages is not None:
        check_count(passages, "passages", MIN_PASSAGE, MAX_PASSAGE)
    fingerprints = count_fingerprints(words, passages)
    return options(threshold, recall, num_hashes, words, distribution, fingerprints)


def options(
    threshold: float,
    recall: float,
    num_hashes: int,
    words: float,
    distribution: Distribution,
    fingerprints: int = 0,
) -> list[Option]:
    """Return the options for documents with this distribution, the exact corpus first."""
    chosen = choose(threshold, recall, num_hashes)
    if not is_number(words) or not 0 <= as_float(words) <= MAX_WORDS:
        raise ConfigurationError(f"words is {words!r}; expected 0 to {MAX_WORDS}")
    threshold, words = as_float(threshold), as_float(words)
    possible = [_exact_option(threshold, words, distribution, chosen is None, fingerprints)]
    for rows in range(MIN_ROWS, num_hashes + 1):
        banding = Bands(num_hashes // rows, rows)
        possible.append(
            Option(
                *banding,
                banding.probability(threshold),
                banding.bands,
                round(
                    storage(
                        WORD_ARRAY + WORD_BYTES * words, 2 * num_hashes, banding.bands, fingerprints
                    )
                ),
                distribution.candidates(banding),
                banding == chosen,
                threshold,
                fingerprints,
            )
        )
    return possible


def _exact_option(
    threshold: float, words: float, distribution: Distribution, is_chosen: bool, fingerprints: int
) -> Option:
    rows = round(count_rows_of(words, threshold))
    return Option(
        None,
        None,
        1.0,
        rows,
        round(storage(WORD_ARRAY + WORD_BYTES * words, 4 * rows, rows, fingerprints)),
        distribution.exact_candidates(threshold, words),
        is_chosen,
        threshold,
        fingerprints,
    )


def count_fingerprints(words: float, passages: int | None, unit: str = "word") -> int:
    if passages is None:
        return 0
    return round(expected_fingerprints(words * (1 if unit == "word" else _CHARACTERS), passages))


def storage(
    text_bytes: float, signature_bytes: float, band_rows: float, fingerprints: float = 0
) -> float:
    """Return the bytes of a document, with its index entries and its share of unused space.

    text_bytes: those of the word ids, or of the normal form in a corpus of characters.

    The layout of a page is described in PostgreSQL's documentation, "Database Physical Storage".
    """
    row = 24 + 4 + 4 + 1 + _KEY_BYTES + 3 + text_bytes + (24 + signature_bytes)
    if fingerprints:
        row += 24 + 4 * fingerprints
    row = _aligned(row) + 4
    # A page holds whole rows only, so on average the space of half a row stays unused.
    document = _PAGE_BYTES / max(_PAGE_BYTES / row - 0.5, 1) if row <= _LONGEST_ROW else row + 200
    by_id, by_key = 16 + 4, _aligned(8 + 1 + _KEY_BYTES) + 4
    # Band rows and fingerprints are two integers with a B-tree on both.
    heap, entry = 32 + 4, 16 + 4
    rows = band_rows * (heap + entry / _PAGE_FILL)
    rows += fingerprints * (heap + entry / _FINGERPRINT_FILL)
    return document + (by_id + by_key) / _PAGE_FILL + rows


def _aligned(size: float) -> float:
    return -(-size // 8) * 8


def choose(threshold: float, recall: float, num_hashes: int) -> Bands | None:
    """Return the banding that create_corpus chooses, None for recall 1; raises ConfigurationError."""
    settings = CorpusSettings(threshold=threshold, recall=recall, num_hashes=num_hashes)
    return settings.complete().banding


def wilson(share: float, count: float) -> tuple[float, float]:
    """Return the 95 % confidence interval of a share of this many independent observations.

    Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    """
    if not count:
        return 0.0, 1.0
    centre = share + Z**2 / (2 * count)
    spread = Z * sqrt(share * (1 - share) / count + Z**2 / (4 * count**2))
    scale = 1 + Z**2 / count
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


LENGTHS = range(3, 7)
"""The lengths of shingles to choose from."""
MOST_EDITS, LONGEST_TEXT = 100, 1_000_000
_LOW_THRESHOLD, _LONGEST_SHINGLE = 0.6, 5
"""A lower threshold makes more candidates and band rows; longer shingles make more band rows."""


class EditOption(NamedTuple):
    """A length of shingles, with the threshold that finds all texts with a number of edits.

    An edit replaces, inserts or removes a character of a normal form. It changes at most n shingles of n
    characters. So two texts with k edits between them share all shingles of one but k n, and together
    they have at most k n more: Gravano et al., "Approximate String Joins in a Database (Almost) for
    Free", VLDB 2001. A text with repeated shingles has fewer, and counts as a shorter text.
    """

    n: int
    """The characters in a shingle."""
    threshold: float
    """The lowest similarity, rounded down."""
    least_shingles: int
    """The distinct shingles that one of the two texts must have."""
    band_rows: int
    """The rows in the band table of a text of this length."""
    storage: int
    """The bytes of such a text, all indexes included."""
    chosen: bool = False


def lowest_similarity(edits: int, characters: int, n: int) -> float:
    """Return the lowest similarity of a text to one with a number of edits.

    characters: the length of the text, in which no shingle is repeated.

    >>> lowest_similarity(edits=1, characters=20, n=4)
    0.6190476190476191
    """
    shingles = characters - n + 1
    return max(0, shingles - edits * n) / max(1, shingles + edits * n)


def plan_edits(edits: int, characters: int) -> list[EditOption]:
    """Return the options for texts of a least length; raises ConfigurationError if there are none."""
    check_count(edits, "edits", 1, MOST_EDITS)
    check_count(characters, "characters", 1, LONGEST_TEXT)
    options = [
        _option(n, characters, threshold)
        for n in LENGTHS
        if (threshold := floor(1000 * lowest_similarity(edits, characters, n)) / 1000) > 0
    ]
    if not options:
        raise ConfigurationError(
            f"a text of {characters} characters may share no {LENGTHS[0]} characters in a row with one "
            f"of {count(edits, 'edit')}; expected {LENGTHS[0] * (edits + 1)} characters or more"
        )
    high = [
        each for each in options if each.threshold >= _LOW_THRESHOLD and each.n <= _LONGEST_SHINGLE
    ]
    chosen = high[-1] if high else options[0]
    return [each._replace(chosen=each is chosen) for each in options]


def _option(n: int, characters: int, threshold: float) -> EditOption:
    shingles = characters - n + 1
    rows = round(count_rows_of(shingles, threshold))
    return EditOption(n, threshold, shingles, rows, round(storage(characters, 4 * rows, rows)))
