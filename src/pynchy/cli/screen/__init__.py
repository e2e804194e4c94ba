"""The inbox in a terminal. Only `pynchy inbox` imports it: textual takes a fifth of a second.

feed           what the host says, live, in threads of its own
question_list  which questions there are, in which order; saved_state: what outlives the screen
markdown_text  what agents wrote, made harmless, with Markdown, code and diffs
rows           the list and the line above it; card: one question as a form
answering      what is marked, written and sent
base_screen    the screen of all that, as the host tells of it
inbox          what keys, clicks and buttons do there
keys           which key is for what, and the dialogs of some: reason, snooze, help
side_screens   who is waiting, and what is closed
"""
