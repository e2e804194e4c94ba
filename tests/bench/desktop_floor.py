"""D-Bus's own floor: a bare connection that notes when a button's signal reaches it.

Its argument is the bus's address. Prints `ready` when it listens, then the moment of each signal in
nanoseconds of the clock that all processes share. It ends with its bus.
"""

import sys
import time

from jeepney import HeaderFields, MatchRule, message_bus
from jeepney.io.blocking import open_dbus_connection

SERVICE = "org.freedesktop.Notifications"


def main(address: str) -> None:
    with open_dbus_connection(address) as connection:
        rule = MatchRule(type="signal", interface=SERVICE, member="ActionInvoked")
        connection.send_and_get_reply(message_bus.AddMatch(rule))
        print("ready", flush=True)  # noqa: T201 - the driver reads our stdout
        while True:
            message = connection.receive()
            if message.header.fields.get(HeaderFields.member) == "ActionInvoked":
                print(time.monotonic_ns(), flush=True)  # noqa: T201 - the same


if __name__ == "__main__":
    main(sys.argv[1])
