"""The agent programs that can be run: one module each, found by its name.

A module `cores/<name>.py` with a `CORE` (see base.Core) is all that another agent needs. What
begins with an underscore is a part of others.
"""

import importlib
import pkgutil

from agent_runner.cores.base import Core


def names() -> list[str]:
    """Return the names of all agents that there are."""
    found = (module.name for module in pkgutil.iter_modules(__path__))
    return sorted(name for name in found if name != "base" and not name.startswith("_"))


def load(name: str) -> Core:
    """Return the core of that name. Raise KeyError if there is none."""
    if name not in names():
        raise KeyError(name)
    core: Core = importlib.import_module(f"{__name__}.{name}").CORE
    return core
