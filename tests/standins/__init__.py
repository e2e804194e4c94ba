"""Stand-ins for services that tests cannot reach: strict, and over real sockets."""
