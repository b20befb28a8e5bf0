"""Counts the @PLURAL@."""

NAME = "@NAME@"
HELP = "print how many @PLURAL@ there are"


def configure(parser):
    """Takes no arguments of its own."""


def run(args, store):
    print(len(store.items()))
    return 0
