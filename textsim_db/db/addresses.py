"""Addresses of databases: as libpq reads them, as SQLAlchemy reads them, and as they may be shown."""

from __future__ import annotations

import re
from urllib.parse import unquote

import sqlalchemy
from sqlalchemy.engine import URL, make_url

from textsim_db.errors import ConfigurationError

_ADDRESS = re.compile(
    r"(?P<user>[^:/?@]*(:[^@]*)?@)?(?P<hosts>[^/?@]*)(?P<tail>([/?].*)?)", re.DOTALL
)
_HOST = re.compile(r"(\[(?P<ip>[^]]*)]|(?P<name>[^:[\]]*))(:(?P<port>[0-9]*))?")
_UNREADABLE = (
    "the address of the database cannot be read; expected an address such as "
    "postgresql://user@host/name, with special characters of a password written as %40, %2F ..."
)


def sqlalchemy_url(address: str) -> URL:
    """Return the address for SQLAlchemy; raise ConfigurationError if it is not one of PostgreSQL."""
    scheme, separator, rest = address.partition("://")
    if not separator or scheme not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise ConfigurationError(
            f"the address of the database begins with {scheme.split(':')[0]!r}; expected an address "
            "such as postgresql://user@host/name"
        )
    try:
        rest.encode()
        url = _join_hosts(_parse(rest))
        # Impossible ports and host names fail here, before anything connects to them.
        _, arguments = url.get_dialect()().create_connect_args(url)
        for host in str(arguments.get("host", "")).split(","):
            if not host.startswith(("/", "@")):
                host.encode("idna")
            if "@" in host[1:]:
                raise ConfigurationError(_UNREADABLE)
    except (sqlalchemy.exc.ArgumentError, ValueError) as error:
        # The error itself may quote a part of a password, so it is not kept as the cause.
        raise ConfigurationError(_reason(rest, error)) from None
    return url


def _parse(rest: str) -> URL:
    """Read an address without its scheme; SQLAlchemy itself cannot read host1:port1,host2:port2."""
    match = _ADDRESS.fullmatch(rest)
    places = [] if match is None else match["hosts"].split(",")
    matches = [each for each in map(_HOST.fullmatch, places) if each is not None]
    if len(matches) < len(places):
        raise ValueError("a port is not a number")
    if match is None or len(matches) == 1:
        return make_url(f"postgresql+psycopg://{rest}")
    url = make_url(f"postgresql+psycopg://{match['user'] or ''}{match['tail']}")
    if "host" in url.query:  # libpq prefers it
        return url
    hosts = ",".join(unquote(each["ip"] or each["name"]) for each in matches)
    ports = ",".join(each["port"] or "" for each in matches)
    return url.update_query_dict({"host": hosts} | ({"port": ports} if ports.strip(",") else {}))


def _join_hosts(url: URL) -> URL:
    """Return an address whose several hosts are written as libpq reads them: host=a,b&port=1,2."""
    host, port = url.query.get("host"), url.query.get("port")
    if isinstance(host, str) and isinstance(port, str) and "," in host and "," not in port:
        return url.update_query_dict({"port": ",".join([port] * len(host.split(",")))})
    if isinstance(host, tuple):
        _, arguments = url.get_dialect()().create_connect_args(url)
        names = [name for name in ("host", "port") if arguments.get(name)]
        return url.update_query_dict({name: arguments[name] for name in names})
    return url


def _reason(rest: str, error: Exception) -> str:
    """Return why an address cannot be read, with its host and port, and never a password."""
    hosts = rest.rpartition("@")[2].partition("?")[0].partition("/")[0]
    for place in hosts.split(","):
        host, colon, port = place.rpartition(":")
        if colon and port and "]" not in port and not (port.isascii() and port.isdigit()):
            return (
                f'the address of the database cannot be read: the port "{port}" of the host "{host}" '
                "is not a number; expected an address such as postgresql://user@host:5432/name"
            )
    if isinstance(error, UnicodeError | sqlalchemy.exc.ArgumentError):
        return f"the address of the database cannot be read: {error}"
    return _UNREADABLE


def plain_url(url: URL) -> str:
    """Return the address for psql and other clients of libpq, with the password."""
    address = _join_hosts(url).set(drivername="postgresql").render_as_string(hide_password=False)
    # libpq accepts neither the spaces that SQLAlchemy leaves in names of roles, nor the plus signs that
    # SQLAlchemy writes for spaces in options.
    address, mark, query = address.partition("?")
    return address.replace(" ", "%20") + mark + query.replace("+", "%20")


def public_url(url: URL) -> str:
    """Return the address for clients of libpq without its passwords, to show it."""
    hidden = {name: "***" for name in url.query if "password" in name}
    shown = url.set(drivername="postgresql").update_query_dict(hidden)
    return shown.render_as_string(hide_password=True)
