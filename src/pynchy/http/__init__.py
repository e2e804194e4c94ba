"""The HTTP interface: what waits, answering it, what happened."""
