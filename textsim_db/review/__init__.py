"""review: a corpus in; pages on which a person looks at its pairs and clusters, and judges them, out.

Also pages in a file: what dedupe removed, and two texts side by side.

Never listens on anything but the loopback address, and loads nothing from a network.
"""
