"""Addresses of databases: as libpq reads them, as SQLAlchemy gets them, and as they may be shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from textsim_db.errors import ConfigurationError

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

_UNREADABLE = (
    "the address of the database cannot be read; expected an address such as "
    "postgresql://user@host:5432/name, with special characters of a password written as %40, %2F ..."
)


def parameters_of(address: str) -> dict[str, Any]:
    """Return the parameters of an address for psycopg; raise ConfigurationError for another address."""
    scheme, separator, rest = address.partition("://")
    if not separator or scheme not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise ConfigurationError(
            f"the address of the database begins with {scheme.split(':')[0]!r}; expected an address "
            "such as postgresql://user@host/name"
        )
    try:
        parameters = conninfo_to_dict(f"postgresql://{rest}")
    except (psycopg.Error, UnicodeError):
        # The error may quote a part of a password, so it is not kept as the cause.
        raise ConfigurationError(_UNREADABLE) from None
    hosts, ports = (str(parameters.get(name, "")).split(",") for name in ("host", "port"))
    # An unescaped sign of a password makes its end a host or a name, which messages show.
    authority, _, path = rest.partition("?")[0].partition("/")
    is_escaped = authority.count("@") < 2 and "@" not in path
    if not (is_escaped and all(map(_is_port, ports)) and len(ports) in (1, len(hosts))):
        raise ConfigurationError(_UNREADABLE)
    return parameters


def _is_port(text: str) -> bool:
    return not text or (text.isascii() and text.isdigit())


def sqlalchemy_url(address: str) -> URL:
    """Return the address for SQLAlchemy; raise ConfigurationError if it is not one of PostgreSQL."""
    return _url(parameters_of(address)).set(drivername="postgresql+psycopg")


def _url(parameters: Mapping[str, Any]) -> URL:
    """Return a URL with these parameters; its query has several hosts, and the folder of a socket."""
    from sqlalchemy.engine import URL

    given = {name: str(value) for name, value in parameters.items()}
    names = [("username", "user"), ("database", "dbname")]
    if "user" in given:  # a password without a user stands in the query
        names.append(("password", "password"))
    parts: dict[str, Any] = {part: given.pop(name, None) for part, name in names}
    host, port = given.get("host", ""), given.get("port", "")
    if host and not host.startswith(("/", "@")) and "," not in host:
        given = {name: value for name, value in given.items() if name not in ("host", "port")}
        parts |= {"host": host, "port": int(port) if port else None}
    elif "," in host and port and "," not in port:  # libpq takes one port for all hosts
        given["port"] = ",".join([port] * len(host.split(",")))
    return URL.create("postgresql", **parts, query=given)


def plain_url(url: URL) -> str:
    """Return the address for psql and other clients of libpq, with the password."""
    _, parameters = url.get_dialect()().create_connect_args(url)
    address = _url(parameters).render_as_string(hide_password=False)
    # libpq accepts neither the spaces that SQLAlchemy leaves in names of roles, nor the plus signs that
    # SQLAlchemy writes for spaces in options.
    address, mark, query = address.partition("?")
    return address.replace(" ", "%20") + mark + query.replace("+", "%20")


def public_url(url: URL) -> str:
    """Return the address for clients of libpq without its passwords, to show it."""
    hidden = {name: "***" for name in url.query if "password" in name}
    shown = url.set(drivername="postgresql").update_query_dict(hidden)
    return shown.render_as_string(hide_password=True)
