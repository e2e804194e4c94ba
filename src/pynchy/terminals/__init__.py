"""Programs that ask by the title of their terminal, and get the answer typed."""
