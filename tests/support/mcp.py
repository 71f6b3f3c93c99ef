"""The official client of the tools, in this process, over standard input and output, or over HTTP."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import TextContent

import textsim_db as ts
from tests.support.commands import process
from textsim_db.cli.messages import explain
from textsim_db.corpus.database import URL_VARIABLE
from textsim_db.mcp.tool_server import ToolServer
from textsim_db.mcp.tools import CorpusTools


class Refused(Exception):
    """The tool answered with an error; the message is the answer."""


class Caller:
    """Calls a tool by its name, with its arguments, and returns the answer; raises Refused."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def __call__(self, name: str, **arguments: Any) -> Any:
        text, is_error = await answer_of(self.client, name, arguments)
        if is_error:
            raise Refused(text)
        return json.loads(text)

    async def tools(self) -> list[str]:
        return [tool.name for tool in (await self.client.list_tools()).tools]


def tool_server(corpus: ts.Corpus, scope: str | None = None, write: bool = False) -> ToolServer:
    return ToolServer(CorpusTools(corpus, scope), write, explain)


async def answer_of(client: Client, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
    """Return the text of an answer, and whether it is an error."""
    result = await client.call_tool(name, arguments)
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text, result.is_error


@asynccontextmanager
async def calling(server: Any) -> AsyncIterator[Caller]:
    """Connect the client to a server, the parameters of a process, or a transport."""
    if isinstance(server, ToolServer):
        server = server.server
    async with Client(server) as client:
        yield Caller(client)


def over_stdio(url: str, *arguments: str) -> StdioServerParameters:
    command = ["-m", "textsim_db.cli", "mcp", *arguments]
    environment = {**os.environ, URL_VARIABLE: url, "PYTHONPATH": os.pathsep.join(sys.path)}
    return StdioServerParameters(command=sys.executable, args=command, env=environment)


class HttpServer(NamedTuple):
    address: str
    token: str
    process: subprocess.Popen[str]

    @asynccontextmanager
    async def transport(self) -> AsyncIterator[Any]:
        headers = {"Authorization": f"Bearer {self.token}"}
        async with (
            create_mcp_http_client(headers) as client,
            streamable_http_client(self.address, http_client=client) as streams,
        ):
            yield streams


@contextmanager
def over_http(url: str, *arguments: str) -> Iterator[HttpServer]:
    """Serve in a process of its own, at the address and with the token that it prints."""
    with process("mcp", *arguments, "--http", "0", url=url) as server:
        assert server.stderr is not None
        try:
            lines = [server.stderr.readline(), server.stderr.readline()]
            printed = re.search(r"on (\S+);.*\ntoken: (\S+)\n", "".join(lines))
            assert printed, lines + server.stderr.readlines()
            yield HttpServer(printed[1], printed[2], server)
        finally:
            server.terminate()
