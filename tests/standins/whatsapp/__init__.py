"""A stand-in for WhatsApp, for tests: everything but the foreign functions of neonize is real.

    with WhatsAppStandIn() as whatsapp:
        the host's environment: environ(whatsapp.address)
        ana = whatsapp.person("491701234567", "Ana")
        ana.say(GROUP, "1", quote=whatsapp.sent[-1])

boundary   in the child: the foreign functions, and events called back from another thread
server     in the test: who is connected, what was sent, what goes wrong
events     WhatsApp's events, as neonize's protobuf messages are written in JSON
person     what people do
"""

from pathlib import Path

from tests.standins.whatsapp.person import Person
from tests.standins.whatsapp.server import SentText, WhatsAppStandIn

__all__ = ["STAND_IN", "Person", "SentText", "WhatsAppStandIn", "environ"]

# The host passes on to its child what concerns Python.
STAND_IN = "PYTHON_WHATSAPP_STAND_IN"


def environ(address: str) -> dict[str, str]:
    """Return what a host's environment needs so that its child talks to the stand-in."""
    return {STAND_IN: address, "PYTHONPATH": str(Path(__file__).parent / "site")}
