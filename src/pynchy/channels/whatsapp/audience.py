"""Where each group asks, and who may answer there, whatever form a person or chat comes in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pynchy.channels.whatsapp.addresses import all_normal, normal
from pynchy.channels.whatsapp.inbound_message import InboundMessage
from pynchy.config import WHATSAPP, Settings
from pynchy.model import GroupName


@dataclass(frozen=True, slots=True)
class WhatsAppGroups:
    """What the settings say; `people` are the entries of a group's list by how they compare."""

    chats: frozenset[str] = frozenset()
    self_chat: bool = False
    people: Mapping[GroupName, Mapping[str, str]] = field(default_factory=dict)

    def entry_of(self, group: GroupName, senders: Iterable[str]) -> str | None:
        """Return the entry of the group's list that means this person; None if none does."""
        listed = self.people.get(group, {})
        return next((listed[form] for form in senders if form in listed), None)

    def knows(self, said: InboundMessage) -> bool:
        """True if this person may answer for any group."""
        return any(self.entry_of(group, said.senders) is not None for group in self.people)


def read_groups(settings: Settings) -> WhatsAppGroups:
    """Return the audience of the groups that ask in WhatsApp."""
    groups = {
        GroupName(name): group
        for name, group in settings.groups.items()
        if WHATSAPP in group.channels
    }
    return WhatsAppGroups(
        all_normal(group.chat.get(WHATSAPP, "") for group in groups.values()),
        any(group.self_chat for group in groups.values()),
        {
            name: {
                form: entry
                for entry in group.allowed_users.get(WHATSAPP, ())
                if (form := normal(entry))
            }
            for name, group in groups.items()
        },
    )
