from textsim_db.measures.alignments import (
    Arrow as Arrow,
    EditTable as EditTable,
    alignment as alignment,
    edit_table as edit_table,
)
from textsim_db.measures.by_name import (
    MEASURES as MEASURES,
    Measure as Measure,
    measure_of as measure_of,
)
from textsim_db.measures.edits import (
    levenshtein as levenshtein,
    levenshtein_similarity as levenshtein_similarity,
)
from textsim_db.measures.matrices import (
    CharacteristicMatrix as CharacteristicMatrix,
    Vocabulary as Vocabulary,
    characteristic_matrix as characteristic_matrix,
    lsh_buckets as lsh_buckets,
    lsh_candidates as lsh_candidates,
    lsh_candidates_of as lsh_candidates_of,
    pairwise_matrix as pairwise_matrix,
    signature_matrix as signature_matrix,
)
from textsim_db.measures.sets import (
    Estimate as Estimate,
    bag_of_words as bag_of_words,
    character_shingles as character_shingles,
    containment as containment,
    dice as dice,
    jaccard as jaccard,
    overlap as overlap,
    signature_estimate as signature_estimate,
    weighted_jaccard as weighted_jaccard,
    without_stop_words as without_stop_words,
    word_counts as word_counts,
    word_ngrams as word_ngrams,
)
from textsim_db.measures.vectors import (
    Frequencies as Frequencies,
    cosine_distance as cosine_distance,
    cosine_similarity as cosine_similarity,
    counts as counts,
    document_frequencies as document_frequencies,
    euclidean as euclidean,
    frequencies as frequencies,
    idf_weights as idf_weights,
    jaccard_of_counts as jaccard_of_counts,
    lr_norm as lr_norm,
    manhattan as manhattan,
)
from textsim_db.text.shingles import shingles as shingles
from textsim_db.text.tokens import normal_form as normal_form, words as words
