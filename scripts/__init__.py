"""What writes the generated files of the project, and freezes the schema."""
