"""sync: changes of attached tables in, a corpus that equals the tables out.

Sources, the log of what changed, and the worker that indexes it.
Never holds up a user's transaction.
"""
