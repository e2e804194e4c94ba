"""What can go wrong in the demo."""

from __future__ import annotations

from pynchy.errors import PynchyError


class DemoFailed(PynchyError):
    """A step did not happen as the story says; the text says which and what was seen instead."""
