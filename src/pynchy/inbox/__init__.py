"""The inbox: what waits for a person, as pages that need nothing but a browser.

keys      the one table of keys, for the page and for a terminal
markdown  what agents wrote, as HTML that can do nothing
views     what a card says; agents: who is waiting
render    cards and pages as HTML, and the files that they load
sign_in   one-time links and the browsers that are signed in
"""
