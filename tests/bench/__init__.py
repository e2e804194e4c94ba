"""The benchmark: `python -m tests.bench` prints each figure beside its limit and its goal.

latency   an answer's way to the waiting call, beside a bare durable write and raw inotify
servers   start and memory of our MCP servers, beside one made with the official SDK
lookups   finding an open question among few and among many
recovery  the start of a host that has many open questions
slack     a click's way to the waiting call, beside a bare Bolt listener
"""
