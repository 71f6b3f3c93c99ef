"""integrity: a stored corpus in, the rows and objects that contradict each other out.

The corpus is compared with itself, with its attached tables, and with the installed objects.
Never writes.
"""
