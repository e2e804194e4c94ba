"""Fixtures for many agents at once."""

from tests.acceptance.conftest import start_host

__all__ = ["start_host"]
