"""WhatsApp: numbered text in a group, a direct chat, or the chat with oneself.

addresses             addresses in their many forms; the paired account; who may answer where
neonize_client, child neonize, and the process that alone imports it
inbound_queue         what was said and not handled yet, on the disk first
process, supervisor   one child and the socket to it; a child is kept running
connection_status     how the connection stands
outbox, sending       written down, then sent; which cards stand in which chat
inbound               from the queue to the reply handler, and refusals back
setup                 pairing a phone, logging out, and checks that the channel can work
channel               all of it together
"""

LIBRARY = "neonize"
INSTALL = "pip install 'pynchy[whatsapp]' (or, in a clone, pip install '.[whatsapp]')"
