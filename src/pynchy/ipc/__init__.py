"""Requests and responses as files, between the host and agents that it does not trust."""
