"""Where people see questions and answer them: one file or folder for each channel."""
