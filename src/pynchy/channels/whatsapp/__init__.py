"""WhatsApp: numbered text in a group, a direct chat, or the chat with oneself.

jids, said            addresses in their many forms; what a person did
library, reading      neonize, and from its messages to what was said     ┐ in the child
keeping, child        on the disk first; the process that does all this   ┘ process alone
shelf                 what was said and not judged yet, in the data folder
line, process         the line between host and child; one child
standing, supervisor  how the connection stands; a child is kept running
account, pairing      whose session it is; pairing a phone, and logging out
outbox, sending       written down, then sent; never silently twice
audience, book        who may answer where; which cards stand in which chat
hearing               from the queue to the reply handler, and refusals back
channel, setup        all of it together; a look whether it can work
"""
