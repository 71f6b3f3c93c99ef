"""settings: what a corpus and a command may be set to, and the checks of values. Imports no NumPy."""
