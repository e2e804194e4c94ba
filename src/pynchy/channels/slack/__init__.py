"""Slack: cards with buttons in a channel, a thread or a direct message.

text, limits          agent text made harmless; everything that Slack refuses, in one place
blocks, options       the parts of a card
pages, render         (questions, card) ► messages, within the limits; plain: without buttons
ids, marks, book      what finds a card again; which message shows which question
web, search           calls, paced and retried; what is in Slack already
posting, leftovers    shown at least once, never silently twice; what must go again
settled, settling     how it ended, on every copy
payloads, replies     what Slack tells of clicks and replies; what they answer
people, recall        who it was; which cards a thread has held
inbox                 from there to the reply handler, and refusals back
bolt, link            the listeners; what keeps Slack able to reach us:
connection, listening   the socket, or the HTTP endpoint; catchup: what was said meanwhile
manifest, setup       the app's manifest; a look whether tokens, scopes and chats are right
channel               all of it together
"""
