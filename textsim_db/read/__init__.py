"""read: a stored corpus in; matches, pairs, clusters and statistics out. Never writes."""
