"""sync: changed rows of attached tables in, a corpus that equals the tables out.

Sources, the log of what changed in them, and the worker that indexes what the log holds.
Never holds up a user's transaction.
"""
