"""The smallest server with the official SDK that has one tool, which waits."""

import asyncio
import sys
from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("bench")


@server.tool()
async def ask_user(question: str) -> str:
    """Ask a person, who never answers. The file says that the call waits."""
    Path(sys.argv[1]).touch()
    await asyncio.Event().wait()
    return question


if __name__ == "__main__":
    server.run()
