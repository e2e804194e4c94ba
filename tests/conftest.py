"""What holds for all tests: how late it is, and that no test is about how fast it runs.

The clock of the tests starts at 0, as on a machine that was switched on a moment ago. What takes 0
for "long ago" then fails here, not on somebody's new server: at the latest where it waits for
longer than the tests have run. Processes that the tests start have the machine's clock.
"""

import time

from hypothesis import HealthCheck, settings

_real = time.monotonic
_started = _real()

time.monotonic = lambda: _real() - _started

settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")
