"""Writes the @PLURAL@ as JSON."""

import json
import sys

from ..store import ToolError

NAME = "@NAME@"
HELP = "write all @PLURAL@ as a JSON list"


def configure(parser):
    parser.add_argument("target", nargs="?", default="-", help="the file to write; it must not exist (default: standard output)")


def run(args, store):
    items = store.items()
    text = json.dumps(items, ensure_ascii=False, indent=2) + "\n"
    if args.target == "-":
        sys.stdout.write(text)
        return 0
    try:
        with open(args.target, "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ToolError(f"cannot write {args.target}: {error.strerror}") from None
    print(f"Exported {len(items)} to {args.target}")
    return 0
