"""A command-line tool that keeps @PLURAL@ in one JSON file."""

__version__ = "0.1.0"

# How the package is laid out: every module in `commands` is one command, found by itself.
LAYOUT = "command-modules/1"
