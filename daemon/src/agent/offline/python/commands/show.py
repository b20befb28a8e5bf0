"""Shows one @ENTITY@."""

from ..store import describe, find

NAME = "@NAME@"
HELP = "show one @ENTITY@"


def configure(parser):
    parser.add_argument("number", type=int, help="the number of the @ENTITY@")


def run(args, store):
    print(describe(find(store.load(), args.number)))
    return 0
