"""The clock of the tests starts at 0, as on a machine that was switched on a moment ago.

What takes 0 for "long ago" then fails here, not on somebody's new server: at the latest where it
waits for longer than the tests have run. Processes that the tests start have the machine's clock.
"""

import time

_real = time.monotonic
_started = _real()

time.monotonic = lambda: _real() - _started
