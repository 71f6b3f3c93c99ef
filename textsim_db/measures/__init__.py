"""The measures of the field on plain sequences of words, characters or integers. Knows no database.

A text is a sequence of characters, `words(text)` is a sequence of words, and a list of word ids is a
sequence of integers. Measures of sets compare which items occur, measures of counts compare how often
each item occurs, and measures of edits compare the order too. Measures of counts also take a mapping
from items to counts.

Two empty sequences share nothing: every similarity is 0 and the angle is 90 degrees. Distances that
count differences are 0. No result is NaN.
"""

from textsim_db.lazy_imports import names_of_stub

# Imported when first used: most of them load neither NumPy nor Numba.
__all__, __getattr__, __dir__ = names_of_stub(__name__, __file__)
