"""The agent's side of pynchy: ask a person, wait, and take the answer in exactly once."""

__version__ = "0.1.0"
