"""review: a corpus in; pages on which a person looks at its pairs and clusters, and judges them, out.

Never listens on anything but the loopback address, and loads nothing from a network.
"""
