"""Runs the tool: `python3 -m @PKG@`."""

import sys

from .cli import main

sys.exit(main())
