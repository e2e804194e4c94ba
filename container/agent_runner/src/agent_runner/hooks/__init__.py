"""What agent programs call before a tool runs, and wait for: no asyncio, which is slow to load."""
