"""sync: changed rows of attached tables in, a corpus that equals the tables out.

Sources, the log of their changes, and the worker that indexes the changes.
Never computes a signature, and never makes a user's transaction wait for long.
"""
