"""Permissions: what an agent wants to do, and the rules that answer before a person is asked.

card       what a person reads of a call, and what they can choose
commands   a shell command line as simple commands, or why it cannot be told what it runs
programs   which programs run others, and which options of well-known ones do
files      which file a call is about, and which a glob means
patterns   what a rule covers, as it is written
rules      what rules say of a call; which rule to offer for it
origins    where rules come from: the settings, and the file of those made on cards
rulebook   the rules that there are, kept on the disk
"""
