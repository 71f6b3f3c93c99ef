"""The database: engine, embedded server, schema, dictionary, binary formats."""
