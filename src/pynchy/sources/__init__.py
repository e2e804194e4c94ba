"""Where questions come from beside the mailbox: agents that pynchy did not start."""
