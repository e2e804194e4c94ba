"""OpenCode's servers: who works there, who waits for a person, and the way back to them."""
