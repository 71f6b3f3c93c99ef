"""The first release. No step leads here: a new database gets the newest schema at once."""

revision = "0001_schema"
down_revision = None
