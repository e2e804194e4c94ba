"""Where questions are kept while they wait, and after."""
