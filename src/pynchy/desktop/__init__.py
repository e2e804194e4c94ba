"""Questions as popups of the desktop, and what people do to them.

popup     a question as a popup: title, body, buttons, urgency (pure)
backend   what a notification service must do: show, close, and tell what happens to popups
dbus      Linux: org.freedesktop.Notifications, by jeepney
popups    which question has which popup: shown once, replaced, closed, reminded of, shown again

Nothing here knows the bridge or HTTP: a host's channel and a person's session run the same.
"""

LIBRARY = "jeepney"
INSTALL = "pip install 'pynchy[desktop]'"
