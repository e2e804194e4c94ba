"""Questions as popups of the desktop that the host runs in."""
