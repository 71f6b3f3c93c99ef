"""text: texts in, normal forms, words, shingles and their hashes out.

Also languages and stop words, and tools for every stage: the kernels' decorators, and streams.
Knows no signatures, no database and no files.
"""
