"""Connections of tests to their databases."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import psycopg

Connection = psycopg.Connection[Any]


def with_option(url: str, option: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}options={quote('-c ' + option)}"


def connection_url(connection: Connection) -> str:
    info = connection.info
    return f"postgresql://{info.user}@/{info.dbname}?host={info.host}&port={info.port}"
