"""The inbox: what waits for a person, as pages that need nothing but a browser.

keys      the one table of keys, for the page and for a terminal
text      hostile text made visible; markdown: made HTML
views     what a card says; pages: cards and pages as HTML
signin    one-time links and the browsers that are signed in
"""
