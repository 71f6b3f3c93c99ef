"""The text that textsim prints without a command: the four commands to begin with."""

from __future__ import annotations

FIRST_STEPS = """\
textsim finds near-duplicate texts, in files and in PostgreSQL.

  Remove the near-duplicates of a file:
    textsim dedupe articles.jsonl -o unique.jsonl

  Store documents in a corpus, here "news":
    textsim index news articles.jsonl --create

  List the documents that are similar to a text:
    textsim query news "the text to look for"

  Keep a table of yours indexed, with textsim worker in another terminal:
    textsim attach blog article --key id --text body --create

No server is needed: without an address, an embedded PostgreSQL starts by itself.

  textsim demo            try it on the Python standard library
  textsim doctor          check the installation and the workers
  textsim --help          list all commands
  textsim COMMAND --help  explain one command, with examples
"""
