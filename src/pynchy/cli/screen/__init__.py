"""The inbox in a terminal. Only `pynchy inbox` imports it: textual takes a fifth of a second.

feed      what the host says, live, in threads of its own
roster    which questions there are, in which order; kept: what outlives the screen
words     what agents wrote, made harmless, with Markdown, code and diffs
rows      the list; card: one question as a form; dialogs: reason, snooze, keys
answering what is marked, written and sent; sending: how it gets to the host
showing   the screen of all that, as the host tells of it; bar: the line at its top
inbox     what keys, clicks and buttons do there; keymap: which key is for what
aside     who is waiting, and what is over
"""
