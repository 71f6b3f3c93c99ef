"""The measures of the field on plain sequences of words, characters or integers, without a database.

A text is a sequence of characters, `words(text)` is a sequence of words, and a list of word ids is a
sequence of integers. Measures of sets compare which items occur, measures of counts compare how often
each item occurs, and measures of edits compare the order too. Measures of counts also take a mapping
from items to counts.

Two empty sequences share nothing: every similarity is 0 and the angle is 90 degrees. Distances that
count differences are 0. No result is NaN.
"""

from __future__ import annotations

from textsim_db.measures.alignment import Arrow, EditTable, alignment, edit_table
from textsim_db.measures.bags_and_ngrams import (
    bag_of_words,
    character_shingles,
    without_stop_words,
    word_counts,
    word_ngrams,
)
from textsim_db.measures.by_name import MEASURES, Measure, measure_of
from textsim_db.measures.edits import levenshtein, levenshtein_similarity
from textsim_db.measures.estimates import Estimate, signature_estimate
from textsim_db.measures.frequencies import Frequencies, counts, frequencies, jaccard_of_counts
from textsim_db.measures.matrices import (
    CharacteristicMatrix,
    characteristic_matrix,
    pairwise_matrix,
    signature_matrix,
)
from textsim_db.measures.sets import containment, dice, jaccard, overlap, weighted_jaccard
from textsim_db.measures.vectors import (
    cosine_distance,
    cosine_similarity,
    euclidean,
    lr_norm,
    manhattan,
)
from textsim_db.measures.vocabulary import Vocabulary
from textsim_db.measures.weights import document_frequencies, idf_weights
from textsim_db.text.shingles import shingles
from textsim_db.text.tokens import normal_form, words

__all__ = [
    "MEASURES",
    "Arrow",
    "CharacteristicMatrix",
    "EditTable",
    "Estimate",
    "Frequencies",
    "Measure",
    "Vocabulary",
    "alignment",
    "bag_of_words",
    "character_shingles",
    "characteristic_matrix",
    "containment",
    "cosine_distance",
    "cosine_similarity",
    "counts",
    "dice",
    "document_frequencies",
    "edit_table",
    "euclidean",
    "frequencies",
    "idf_weights",
    "jaccard",
    "jaccard_of_counts",
    "levenshtein",
    "levenshtein_similarity",
    "lr_norm",
    "manhattan",
    "measure_of",
    "normal_form",
    "overlap",
    "pairwise_matrix",
    "shingles",
    "signature_estimate",
    "signature_matrix",
    "weighted_jaccard",
    "without_stop_words",
    "word_counts",
    "word_ngrams",
    "words",
]
