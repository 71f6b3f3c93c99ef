"""Scripts that write generated files, and the one that freezes the schema for a release."""
