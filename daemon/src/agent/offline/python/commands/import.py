"""Adds @PLURAL@ from a JSON list, as `export` writes it."""

import json
import sys

from ..store import ToolError, clean

NAME = "@NAME@"
HELP = "add @PLURAL@ from a JSON list of texts or of objects with a `text`"


def configure(parser):
    parser.add_argument("source", help="the file to read, or - for standard input")


def read(source):
    """Returns the raw text of the source."""
    try:
        if source == "-":
            return sys.stdin.read()
        with open(source, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise ToolError(f"cannot read {source}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ToolError(f"{source} is not UTF-8 text") from None


def entries(raw, source):
    """Returns the new items without their numbers; one bad entry refuses the whole file."""
    try:
        rows = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ToolError(f"{source} is not JSON: {error}") from None
    if not isinstance(rows, list):
        raise ToolError(f"{source} is not a JSON list")
    items = []
    for position, row in enumerate(rows, 1):
        row = {"text": row} if isinstance(row, str) else row
        if not isinstance(row, dict) or not isinstance(row.get("text"), str):
            raise ToolError(f"entry {position} of {source} has no text")
        item = {"text": clean(row["text"])}
        if row.get("done") is True:
            item["done"] = True
        tags = row.get("tags", [])
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            raise ToolError(f"the tags of entry {position} of {source} are not a list of texts")
        if tags:
            item["tags"] = [clean(tag) for tag in tags]
        items.append(item)
    return items


def run(args, store):
    items = entries(read(args.source), args.source)
    with store.change() as document:
        for item in items:
            document["items"].append({"id": document["next_id"], **item})
            document["next_id"] += 1
    print(f"Imported {len(items)} from {args.source}")
    return 0
