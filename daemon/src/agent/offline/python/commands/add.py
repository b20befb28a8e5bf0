"""Adds @AN@ @ENTITY@."""

from ..store import clean

NAME = "@NAME@"
HELP = "add @AN@ @ENTITY@"


def configure(parser):
    parser.add_argument("text", nargs="+", help="what the @ENTITY@ says")


def run(args, store):
    text = clean(" ".join(args.text))
    with store.change() as document:
        number = document["next_id"]
        document["next_id"] = number + 1
        document["items"].append({"id": number, "text": text})
    print(f"Added @ENTITY@ {number}: {text}")
    return 0
