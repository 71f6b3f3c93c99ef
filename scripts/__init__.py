"""Scripts that write generated files."""
