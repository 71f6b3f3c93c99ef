"""A proxy that cuts connections, or changes the server's replies, at chosen moments."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import psycopg

COMMIT = b"COMMIT\0"

Cut = Callable[["Proxy", bytes], str | None]
"""Decides whether the data that a client sends cuts its connection.

"before": the server never gets the data. "after": the server gets the data, and its reply is lost.
None: the connection stays.
"""


class Proxy:
    """Listens on the loopback interface and forwards everything to a server."""

    def __init__(self, url: str) -> None:
        with psycopg.connect(url) as connection:
            info = connection.info
            host, port = info.host, info.port
            self.url = f"postgresql://{info.user}@127.0.0.1:%d/{info.dbname}?sslmode=disable"
        self._target = f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url %= self._listener.getsockname()[1]
        """The address of the proxy."""
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.cut: Cut = lambda proxy, data: None
        """Called with all data that clients send."""
        self.replies: Callable[[bytes], bytes] = lambda data: data
        """Changes the server's data, keeping its length."""
        self.cuts = 0
        self.commits = 0
        self.sent = 0

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                unix = isinstance(self._target, str)
                server = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
                server.connect(self._target)
                self._sockets += [client, server]
                lost = threading.Event()
                self._start(partial(self._requests, client, server, lost))
                self._start(partial(self._answers, client, server, lost))

    def _start(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target)
        self._threads.append(thread)
        thread.start()

    def _requests(
        self, client: socket.socket, server: socket.socket, lost: threading.Event
    ) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 16):
                self.sent += len(data)
                self.commits += data.count(COMMIT)
                cut = self.cut(self, data)
                if cut is not None:
                    self.cuts += 1
                    if cut == "before":
                        break
                    lost.set()
                server.sendall(data)
        if not lost.is_set():
            _close(client, server)

    def _answers(self, client: socket.socket, server: socket.socket, lost: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                if lost.is_set():
                    break
                client.sendall(self.replies(data))
        _close(client, server)

    def _stop(self) -> None:
        _close(self._listener, *self._sockets)
        for thread in self._threads:
            thread.join()


@contextmanager
def open_proxy(url: str) -> Iterator[Proxy]:
    """Run a proxy before a database."""
    proxy = Proxy(url)
    proxy._start(proxy._serve)
    try:
        yield proxy
    finally:
        proxy._stop()


def _close(*sockets: socket.socket) -> None:
    for open_socket in sockets:
        with suppress(OSError):
            open_socket.shutdown(socket.SHUT_RDWR)
        open_socket.close()


def cut_commit(number: int, when: str) -> Callable[[Proxy, bytes], str | None]:
    """Return a function that cuts the connection before or after the COMMIT of this number."""
    commits = 0

    def cut(proxy: Proxy, data: bytes) -> str | None:
        nonlocal commits
        commits += COMMIT in data
        return when if COMMIT in data and commits == number else None

    return cut
