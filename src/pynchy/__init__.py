"""pynchy carries an agent's question to a person, and the answer back."""

__version__ = "0.1.0"
