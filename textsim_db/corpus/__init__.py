"""corpus: the methods of a Corpus, which check arguments and call the packages that do the work.

Texts, keys and settings come in; results go out. Each file has the methods of one subject. A file and a
frame lose their near-duplicates in a temporary corpus. The package never writes SQL, and never computes
a signature itself.
"""

from textsim_db.corpus.corpus import Corpus

__all__ = ["Corpus"]
