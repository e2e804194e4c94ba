"""OpenFlow's notify, as far as an agent sees it: it says that it has sent, and does not wait."""

from mcp.server import MCPServer

server = MCPServer("notify")


@server.tool()
def ask_user(
    title: str,
    question: str,
    options: list[str] | None = None,
    agent: str = "",
    urgency: str = "normal",
) -> str:
    """Show a person a question."""
    del question, options, urgency
    return f"⚠️ Question sent [{agent}]: {title}"


if __name__ == "__main__":
    server.run()
