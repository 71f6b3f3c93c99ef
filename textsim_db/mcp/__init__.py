"""mcp: calls of tools by a model in, short answers out. The tools see one scope of one corpus.

A tool calls the method of a corpus that SQL and the shell call, and never writes SQL.
"""
