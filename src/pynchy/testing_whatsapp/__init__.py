"""A stand-in for WhatsApp, for tests: everything but the foreign functions of neonize is real.

    with WhatsAppStandIn() as whatsapp:
        child's environment: PYNCHY_WHATSAPP_STAND_IN = whatsapp.address
        ana = whatsapp.person("491701234567", "Ana")
        ana.say(GROUP, "1", quote=whatsapp.sent[-1])

boundary   in the child: the foreign functions, and events called back from another thread
server     in the test: who is connected, what was sent, what goes wrong
events     WhatsApp's events, as neonize's protobuf messages are written in JSON
person     what people do
"""

from pynchy.testing_whatsapp.person import Person
from pynchy.testing_whatsapp.server import SentText, WhatsAppStandIn

__all__ = ["Person", "SentText", "WhatsAppStandIn"]
