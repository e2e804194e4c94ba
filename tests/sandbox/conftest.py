"""Real boxes: `make test-sandbox`, which installs bubblewrap, and never `make test`."""

import socketserver
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.sandbox.support import Boxes


@pytest.fixture
async def boxes(tmp_path: Path) -> AsyncIterator[Boxes]:
    made = Boxes(tmp_path)
    yield made
    made.host.kill()


class Echo(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.wfile.write(self.rfile.read())


@pytest.fixture
def servers() -> Iterator[dict[str, int]]:
    """Two programs that listen on the machine's loopback."""
    with ExitStack() as stack:
        ports = {}
        for name in ("proxy", "other"):
            server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo)
            stack.enter_context(server)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
            ports[name] = int(server.server_address[1])
        yield ports
