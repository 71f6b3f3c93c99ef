"""review: a corpus in; pages by which a person judges pairs and clusters out. Never writes SQL."""
