"""Sessions as seen from outside: which there are, whether they live, what they may have lost."""
