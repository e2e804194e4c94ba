"""Slack: cards with buttons in a channel, a thread or a direct message.

limits, blocks        everything that Slack refuses, in one place; the parts of a card and their ids
render, settling      (questions, card) ► messages within the limits; how it ended, on every copy
web                   calls, paced and retried; a message without buttons where Slack wants none
card_index            which message shows which question, by what is written into each message
card_history          which cards Slack has that the index does not know
posting               shown at least once, never silently twice; what must go again is removed
payloads, replies     what Slack tells of clicks and replies; what they answer
people                who it was
inbound               from there to the reply handler, and refusals back
connection            what keeps Slack able to reach us: the socket, or the HTTP endpoint
setup                 the app's manifest; are tokens, scopes and chats right
channel               all of it together
"""
