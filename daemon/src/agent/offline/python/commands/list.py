"""Lists all @PLURAL@."""

from ..store import describe

NAME = "@NAME@"
HELP = "list all @PLURAL@"


def configure(parser):
    """Takes no arguments of its own."""


def run(args, store):
    items = store.items()
    if not items:
        print("There are no @PLURAL@ yet.")
    for item in items:
        print(describe(item))
    return 0
