"""Let WhatsApp's child use the stand-in: Python reads this at its start, being on PYTHONPATH.

So no program of pynchy knows of stand-ins, and the child is started just as it always is.
"""

import os
import sys
from pathlib import Path

_CHILD = "pynchy.channels.whatsapp.child"
_ADDRESS = os.environ.get("PYTHON_WHATSAPP_STAND_IN")

if _ADDRESS is not None and _CHILD in sys.orig_argv:
    sys.path.insert(0, str(Path(__file__).parents[4]))
    from tests.standins.whatsapp.boundary import install

    install(_ADDRESS)
