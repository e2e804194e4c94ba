"""WhatsApp: the library, the session, and the chat and people of each group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec

from pynchy.cli.doctor.finding import Finding, fine, problem
from pynchy.config import WHATSAPP, Settings, WhatsAppChannelSettings
from pynchy.data_dir import DataFolder

_INSTALL = "pip install '.[whatsapp]' in pynchy's folder"


def look_at_whatsapp(
    settings: Settings, data: DataFolder, environ: Mapping[str, str], *, running: bool
) -> Iterator[Finding]:
    """Look at the WhatsApp channel, if there is one; `running` if a host tells its troubles."""
    table = settings.channels.get(WHATSAPP)
    if not isinstance(table, WhatsAppChannelSettings):
        return
    if find_spec("neonize") is None:
        yield problem(WHATSAPP, "neonize is not installed", _INSTALL)
        return
    # Only where it is used.
    from pynchy.channels.whatsapp.channel import store_of  # noqa: PLC0415
    from pynchy.channels.whatsapp.setup import examine  # noqa: PLC0415

    home = data.path / WHATSAPP
    for look in examine(settings, home, store_of(table, home), environ, running=running):
        found = problem(look.check, look.detail, look.fix) if look.fix else None
        yield found or fine(look.check, look.detail)
