"""An agent that keeps each fact once, by the tools of `textsim mcp`."""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from mcp import Client, StdioServerParameters
from mcp_types import TextContent

Judge = Callable[[dict[str, Any]], bool]
"""Says whether a match says the same as the text: in your application, the model."""


class Refused(Exception):
    """A tool answers with an error, or does not store a text; the message says why."""


class Agent:
    def __init__(self, client: Client, says_the_same: Judge) -> None:
        self._client = client
        self._says_the_same = says_the_same

    async def note(self, text: str) -> str | None:
        """Keep a fact, and return its key; None if a stored text says the same.

        Raises Refused if a text with equal words says something else, such as < for >.
        """
        answer = await self._call("remember", text=text)
        while not answer["is_stored"]:
            if any(map(self._says_the_same, answer["matches"])):
                return None
            if "note" in answer:
                raise Refused(answer["note"])
            answer = await self._call("remember", text=text, force=True)
        key: str = answer["key"]
        for match in answer["matches"]:
            if "guards" in match:
                continue  # a number or a negation differs: both stay, without a question
            if not await self._keep_both(key, match["key"], match):
                return None
        return key

    async def settle(self) -> None:
        """Judge the pairs that no answer listed; one agent at a time, after all notes."""
        while pairs := (await self._call("doubtful", k=100, max_bytes=100_000))["pairs"]:
            gone: set[str] = set()
            for pair in pairs:
                a, b = pair["a"], pair["b"]
                if gone.isdisjoint((a, b)) and not await self._keep_both(a, b, pair):
                    gone.add(a)

    async def _keep_both(self, key: str, other: str, match: dict[str, Any]) -> bool:
        """Judge two documents different, or forget the first; return whether both are kept."""
        if self._says_the_same(match):
            await self._call("forget", keys=[key])
            return False
        with suppress(Refused):  # another agent has forgotten the other document meanwhile
            await self._call("judge", a=key, b=other, verdict="different")
        return True

    async def _call(self, tool: str, **arguments: Any) -> Any:
        answer = await self._client.call_tool(tool, arguments)
        (content,) = answer.content
        assert isinstance(content, TextContent)
        if answer.is_error:
            raise Refused(content.text)
        return json.loads(content.text)


def ask(match: dict[str, Any]) -> bool:
    """Let the user answer what a model would."""
    return input(f"  known: {match['text']}\n  the same? [y/N] ").lower().startswith("y")


async def main(scope: str) -> None:
    command = ["-m", "textsim_db.cli", "mcp", "facts", "--scope", scope, "--write"]
    server = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
    async with Client(server) as client:
        agent = Agent(client, ask)
        while text := input("note, or nothing to end: "):
            try:
                print("  kept" if await agent.note(text) else "  known")
            except Refused as refused:
                print(f"  not kept: {refused}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
