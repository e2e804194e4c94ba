"""`pynchy desktop`: popups in a person's session, for a host that runs elsewhere.

session    a browser's sign-in without a browser: link, cookie, page key, signed requests
following  the host's stream as popups, and what people do to them as answers
command    the command, and what starts it with the session
"""
