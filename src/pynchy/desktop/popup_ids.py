"""The popups' ids on the disk, so that a restart replaces popups and doubles none."""

from __future__ import annotations

import logging
from contextlib import suppress

from pynchy.desktop.popup import PopupKey
from pynchy.model import GroupName, RequestId
from pynchy.safe_folder import Folder, UnsafeFile

log = logging.getLogger(__name__)

_MAX_ID_BYTES = 300
# Neither groups nor request ids have it.
_BETWEEN = "~"


class PopupIds:
    """One small file for each popup."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def load(self) -> dict[PopupKey, str]:
        """Return what was kept; what cannot be read is left out."""
        self._folder.make()
        found: dict[PopupKey, str] = {}
        for name in self._folder.names():
            group, between, request_id = name.rpartition(_BETWEEN)
            with suppress(OSError, UnsafeFile, UnicodeDecodeError):
                if between:
                    text = self._folder.read(name, _MAX_ID_BYTES).decode()
                    found[GroupName(group), RequestId(request_id)] = text
        return found

    def keep(self, key: PopupKey, popup_id: str) -> None:
        """Keep the id of a popup."""
        try:
            self._folder.replace(_BETWEEN.join(key), popup_id.encode())
        except OSError:
            # The popup is there all the same; after a restart there may be two of it.
            log.exception("desktop.id_not_kept")

    def forget(self, key: PopupKey) -> None:
        """Forget the popup."""
        try:
            self._folder.remove(_BETWEEN.join(key))
        except OSError:
            log.exception("desktop.id_kept")
