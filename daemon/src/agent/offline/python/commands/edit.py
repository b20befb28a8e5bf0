"""Changes the text of @AN@ @ENTITY@."""

from ..store import clean, find

NAME = "@NAME@"
HELP = "change the text of @AN@ @ENTITY@"


def configure(parser):
    parser.add_argument("number", type=int, help="the number of the @ENTITY@")
    parser.add_argument("text", nargs="+", help="what it says from now on")


def run(args, store):
    text = clean(" ".join(args.text))
    with store.change() as document:
        find(document, args.number)["text"] = text
    print(f"Changed @ENTITY@ {args.number}: {text}")
    return 0
