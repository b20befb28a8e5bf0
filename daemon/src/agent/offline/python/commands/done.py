"""Marks @AN@ @ENTITY@ as done."""

from ..store import find

NAME = "@NAME@"
HELP = "mark @AN@ @ENTITY@ as done"


def configure(parser):
    parser.add_argument("number", type=int, help="the number of the @ENTITY@")


def run(args, store):
    with store.change() as document:
        item = find(document, args.number)
        before = item.get("done", False)
        item["done"] = True
    print(f"@ENTITY_CAP@ {item['id']} was done already" if before else f"Done: @ENTITY@ {item['id']}: {item['text']}")
    return 0
