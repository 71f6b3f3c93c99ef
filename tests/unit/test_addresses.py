"""Addresses of databases: what libpq reads, SQLAlchemy gets, and no message shows a password."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.engine import make_url

from textsim_db.db.addresses import plain_url, public_url, sqlalchemy_url

ADDRESSES = [
    *("postgresql:///name", "postgresql://user:secret@host:5432/name?sslmode=require"),
    "postgresql://user:secret@one:5432,two:5433/name?target_session_attrs=read-write",
    *("postgresql://one,two/name", "postgresql://one,two:5433"),
    *("postgresql://[::1]:5432,[::2]/name", "postgresql://[::1]:5432/name"),
    "postgresql://user@%2Ftmp%2Fone,%2Ftmp%2Ftwo:5433/name",
    "postgresql://user:secret%2C%40@one,two/name?application_name=a%20b",
    "postgresql:///name?host=one,two&port=5432,5433&password=secret",
]


def as_libpq(address: str) -> dict[str, Any]:
    """Return the parameters of an address, each as text; a list of empty ports is the default."""
    given = conninfo_to_dict(address).items()
    return {name: str(value) for name, value in given if str(value).strip(",")}


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_means_the_same_as_for_libpq_and_its_password_is_not_shown(address: str) -> None:
    expected = as_libpq(address)
    url = sqlalchemy_url(address)
    assert as_libpq(plain_url(url)) == expected
    assert sqlalchemy_url(plain_url(url)) == url
    _, arguments = url.get_dialect()().create_connect_args(url)
    given = {name: str(value) for name, value in arguments.items() if str(value).strip(",")}
    assert given == expected
    assert public_url(url).startswith("postgresql://")
    assert "secret" not in public_url(url)


def test_other_ways_to_write_several_hosts() -> None:
    # libpq takes one port for all hosts; SQLAlchemy has a way of its own to write several hosts.
    url = sqlalchemy_url("postgresql:///name?host=one,two&port=5433")
    assert as_libpq(plain_url(url)) == as_libpq("postgresql://one:5433,two:5433/name")
    url = make_url("postgresql+psycopg:///name?host=one:1&host=two:2")
    assert as_libpq(plain_url(url)) == as_libpq("postgresql://one:1,two:2/name")
