"""A pynchy as uvx lays it out: in its cache, and on the PATH of that one call alone."""

import sys
from pathlib import Path


def lay_out_as_uvx(folder: Path) -> Path:
    """Return the Python of an environment in a cache of uvx; it has what this one has."""
    own = Path(sys.prefix)
    made = folder / "uv" / "archive-v0" / "Oc4r"
    (made / "bin").mkdir(parents=True)
    (made / "pyvenv.cfg").write_text((own / "pyvenv.cfg").read_text())
    (made / "lib").symlink_to(own / "lib")
    for name in ("python", "pynchy"):
        (made / "bin" / name).symlink_to((own / "bin" / name).resolve())
    return made / "bin" / "python"
