"""Puts tags on @AN@ @ENTITY@."""

from ..store import ToolError, clean, describe, find

NAME = "@NAME@"
HELP = "put one or more tags on @AN@ @ENTITY@"


def configure(parser):
    parser.add_argument("number", type=int, help="the number of the @ENTITY@")
    parser.add_argument("tags", nargs="+", metavar="tag", help="a word; a leading # is dropped")


def word(text):
    """Returns a tag without its `#`; a tag is one word."""
    tag = clean(text).lstrip("#")
    if not tag or " " in tag:
        raise ToolError(f"{text!r} is not a tag: a tag is one word")
    return tag


def run(args, store):
    tags = [word(tag) for tag in args.tags]
    with store.change() as document:
        item = find(document, args.number)
        item["tags"] = list(dict.fromkeys([*item.get("tags", []), *tags]))
    print(describe(item))
    return 0
