"""The inbox in a terminal. Only `pynchy inbox` imports it: textual takes a fifth of a second.

feed      what the host says, live, in threads of its own
roster    which questions there are, in which order; kept: what outlives the screen
words     what agents wrote, made harmless, with Markdown, code and diffs
rows      the list; card: one question as a form; dialogs: reason, snooze, keys
answering what is marked, written and sent; sending: how it gets to the host
inbox     the screen of all that: keys, and what they do; keymap, bar: its edges
aside     who is waiting, and what is over
"""
