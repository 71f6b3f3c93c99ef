"""textsim-db: near-duplicate text search inside PostgreSQL."""

from textsim_db.lazy_imports import names_of_stub

__version__ = "0.1.1"

# Imported when first used, because SQLAlchemy, psycopg, NumPy and Numba take long to import.
__all__, __getattr__, __dir__ = names_of_stub(__name__, __file__)
