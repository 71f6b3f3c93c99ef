"""The measures of the field on plain sequences: words, characters or integers, and no database.

A text is a sequence of characters, words("...") of a text one of words, and a document of word ids
one of integers. Measures of sets look at which items there are, measures of counts at how often
each occurs, and measures of edits at the order as well. A mapping from items to counts may be given
where counts are asked for.

Two empty sequences have nothing in common: every similarity is 0 and the angle 90 degrees, while
distances that count what differs are 0. Nothing is ever NaN.
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
