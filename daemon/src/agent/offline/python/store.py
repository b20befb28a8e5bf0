"""Keeps @PLURAL@ in one JSON file.

The file is replaced as a whole and never edited in place, so that a crash leaves the old or the new content.
A file that cannot be understood is an error and is left as it is.
"""

import contextlib
import json
import os
import tempfile
import unicodedata
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on this platform: two writers at once are then not kept apart
    fcntl = None

VERSION = 1


class ToolError(Exception):
    """Something the user can understand and act on; shown without a traceback."""


def default_path():
    """Returns the file named by `@ENV@`, else `.@PKG@.json` in the home folder."""
    chosen = os.environ.get("@ENV@")
    return Path(chosen) if chosen else Path.home() / ".@PKG@.json"


def clean(text):
    """Returns the text on one line in composed form; empty or undecodable text is refused."""
    line = " ".join(text.split())
    if not line:
        raise ToolError("the text is empty")
    try:
        line.encode("utf-8")
    except UnicodeEncodeError:
        raise ToolError("the text is not valid UTF-8") from None
    return unicodedata.normalize("NFC", line)


def describe(item):
    """Returns the line that shows one @ENTITY@."""
    line = f"{item['id']}. {item['text']}"
    if item.get("done"):
        line += " (done)"
    for tag in item.get("tags", []):
        line += f" #{tag}"
    return line


def find(document, number):
    """Returns the @ENTITY@ with this number; a number that is not there is an error."""
    for item in document["items"]:
        if item["id"] == number:
            return item
    raise ToolError(f"there is no @ENTITY@ {number}")


class Store:
    """The @PLURAL@ in one file. A file that does not exist yet is an empty store."""

    def __init__(self, path=None):
        self.path = Path(path) if path else default_path()

    def load(self):
        """Returns the whole document; raises ToolError when the file is unreadable or not a store."""
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return {"version": VERSION, "next_id": 1, "items": []}
        except OSError as error:
            raise ToolError(f"cannot read {self.path}: {error.strerror}") from None
        try:
            document = json.loads(raw.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise ToolError(f"{self.path} is not a @PLURAL@ store, it was left as it is: {error}") from None
        problem = _problem(document)
        if problem:
            raise ToolError(f"{self.path} is not a @PLURAL@ store, it was left as it is: {problem}")
        return document

    def items(self):
        """Returns the @PLURAL@ in the order they were added."""
        return self.load()["items"]

    def save(self, document):
        """Replaces the file in one step."""
        text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
        target = Path(os.path.realpath(self.path))
        temporary = None
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
            with os.fdopen(handle, "wb") as file:
                file.write(text.encode("utf-8"))
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except OSError as error:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            raise ToolError(f"cannot write {self.path}: {error.strerror}") from None

    @contextlib.contextmanager
    def change(self):
        """Gives the document to edit and saves it afterwards, unless an error is raised meanwhile."""
        with self._lock():
            document = self.load()
            yield document
            self.save(document)

    @contextlib.contextmanager
    def _lock(self):
        if fcntl is None:
            yield
            return
        target = Path(os.path.realpath(self.path))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            lock = open(target.with_name(f".{target.name}.lock"), "w")
        except OSError as error:
            raise ToolError(f"cannot write {self.path}: {error.strerror}") from None
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _problem(document):
    """Returns what is wrong with a document, or None."""
    if not isinstance(document, dict):
        return "it is not an object"
    if document.get("version") != VERSION:
        return f"its version is {document.get('version')!r}, this tool reads {VERSION}"
    items, next_id = document.get("items"), document.get("next_id")
    if not isinstance(items, list) or type(next_id) is not int:
        return "`items` or `next_id` is missing"
    seen = set()
    for item in items:
        if not isinstance(item, dict) or type(item.get("id")) is not int or not isinstance(item.get("text"), str):
            return "one of its items has no number or no text"
        if item["id"] in seen or item["id"] >= next_id:
            return f"the number {item['id']} is used twice or not below `next_id`"
        seen.add(item["id"])
        tags = item.get("tags", [])
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            return f"the tags of {item['id']} are not a list of texts"
    return None
