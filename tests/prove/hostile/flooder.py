"""Write small files into one folder, all the time, and remove the oldest: `flooder.py FOLDER MOST`.

The same work whether anybody looks at the folder or not; prints a line when it is in full swing.
"""

import os
import sys
from pathlib import Path


def main(folder: Path, most: int) -> None:
    number = 0
    while True:
        spare = folder / f".spare-{number}"
        spare.write_bytes(b'{"v": 1, "type": "ask_user:ask", "request_id": "flood"}')
        spare.rename(folder / f"flood-{number}.json")
        number += 1
        if number == most:
            print("flooding", flush=True)  # noqa: T201 - the sign
        if number >= most:
            (folder / f"flood-{number - most}.json").unlink(missing_ok=True)
            os.sched_yield()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
