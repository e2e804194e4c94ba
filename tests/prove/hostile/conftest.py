"""The real processes of the acceptance tests, for those who come to break them."""

from tests.acceptance.conftest import StartHost, runs, shared_host, start_host

__all__ = ["StartHost", "runs", "shared_host", "start_host"]
