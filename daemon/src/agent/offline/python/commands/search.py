"""Searches the @PLURAL@ for a text."""

import unicodedata

from ..store import ToolError, clean, describe

NAME = "@NAME@"
HELP = "show the @PLURAL@ that contain a text, whatever its case"


def configure(parser):
    parser.add_argument("text", nargs="+", help="what to look for")


def fold(text):
    """Returns the text in the form in which texts are compared."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def run(args, store):
    wanted = clean(" ".join(args.text))
    found = [item for item in store.items() if fold(wanted) in fold(describe_for_search(item))]
    if not found:
        raise ToolError(f"no @ENTITY@ contains {wanted!r}")
    for item in found:
        print(describe(item))
    return 0


def describe_for_search(item):
    """Returns what is searched: the text and the tags, not the number."""
    return " ".join([item["text"], *(f"#{tag}" for tag in item.get("tags", []))])
