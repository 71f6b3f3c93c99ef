"""text: texts in, normal forms, words, shingles and their hashes out.

Also languages and stop words, and what every stage needs: the kernels' decorator, and streams.
Knows no signatures, no database and no files.
"""
