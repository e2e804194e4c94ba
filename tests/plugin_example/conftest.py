"""Let the example be imported as if it were installed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
