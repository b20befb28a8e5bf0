"""Removes @AN@ @ENTITY@."""

from ..store import find

NAME = "@NAME@"
HELP = "remove @AN@ @ENTITY@"


def configure(parser):
    parser.add_argument("number", type=int, help="the number of the @ENTITY@")


def run(args, store):
    with store.change() as document:
        item = find(document, args.number)
        document["items"].remove(item)
    print(f"Removed @ENTITY@ {item['id']}: {item['text']}")
    return 0
