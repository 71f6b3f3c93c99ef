"""Scripts that write generated files, and a script that freezes the schema for a release."""
