"""What `pynchy doctor` looks at: each check yields findings of one line, each with one fix.

machine   Python, disk, inotify, the clock
files     the settings, the data folder, the token, what a killed host left behind
host      the running host and what it complains of
slack     the secrets, what they open, and each group's chat
whatsapp  the library, the session, and the chat and people of each group
groups    channels, who may answer, the launcher, and how isolated each agent is
boxes     whether the box of an agent can be made
"""
