"""Put pynchy's MCP server into the settings of an agent program, and take it out again.

Everything else in those files stays as it is, to the byte: they belong to the person.
"""
