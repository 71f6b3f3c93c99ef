"""An agent that checks its quotations by the tool `verify_quote` of `textsim mcp`."""

import asyncio
import json
import os
import sys
from typing import Any

from mcp import Client, StdioServerParameters
from mcp_types import TextContent


async def checked(client: Client, quotations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the quotations that stand in their letters, and print why the others do not.

    In your application the model reads the differences, and quotes the words of the letter instead.
    """
    kept = []
    for quotation in quotations:
        arguments = {"text": quotation["body"], "key": str(quotation["letter"])}
        result = await client.call_tool("verify_quote", arguments)
        (content,) = result.content
        assert isinstance(content, TextContent)
        verdict = {} if result.is_error else json.loads(content.text)
        if verdict.get("verdict") == "exact" and not verdict["differences"]:
            kept.append(quotation)
        else:
            print(f'not quoted: "{quotation["body"]}": {content.text}', file=sys.stderr)
    return kept


async def main(user: str) -> None:
    """Read an answer from standard input, and print it with the quotations that may be stored."""
    command = ["-m", "textsim_db.cli", "mcp", "letters", "--scope", user]
    server = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
    answer = json.load(sys.stdin)
    async with Client(server) as client:
        answer["quotations"] = await checked(client, answer["quotations"])
    print(json.dumps(answer, ensure_ascii=False))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
