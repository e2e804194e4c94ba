"""A package, since a library that we need installs a package of this very name."""
