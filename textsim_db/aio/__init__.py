"""Coroutines of asyncio for all methods of databases and corpora.

    async with aio.connect() as db:
        corpus = await db.corpus("news")
        matches = await corpus.query("The city council approved the budget")
        async for pair in corpus.pairs():
            print(pair)

The methods are those of textsim_db.Database and textsim_db.Corpus, and run in a bounded pool of threads.
Coroutines and results come out; no method is written twice. The package never writes SQL.
"""

from textsim_db.aio.async_database import Corpus, Database, Worker, connect
from textsim_db.aio.threads import Results, Stream

__all__ = ["Corpus", "Database", "Results", "Stream", "Worker", "connect"]
