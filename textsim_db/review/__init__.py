"""review: a corpus in; pages on which a person looks at pairs and clusters, and judges them, out."""
