"""text: texts in, normal forms, words, shingles and their hashes out.

Also languages and stop words. Knows no signatures, no database and no files.
"""
