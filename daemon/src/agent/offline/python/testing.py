"""What the tests share: a tool that works on a store in a throw-away folder."""

import contextlib
import io
import tempfile
import unittest
from collections import namedtuple
from pathlib import Path

from .cli import main
from .store import Store

Result = namedtuple("Result", "code out err")


class ToolCase(unittest.TestCase):
    """A test case with an empty store of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = self.folder / "@PKG@.json"
        self.store = Store(self.path)

    def fill(self, *texts):
        """Puts @PLURAL@ into the store without any command."""
        items = [{"id": number, "text": text} for number, text in enumerate(texts, 1)]
        self.store.save({"version": 1, "next_id": len(items) + 1, "items": items})

    def texts(self):
        """Returns the texts in the store."""
        return [item["text"] for item in self.store.items()]

    def tool(self, *arguments):
        """Runs the tool in this process."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main(["--file", str(self.path), *arguments])
            except SystemExit as stop:
                code = stop.code
        return Result(code, out.getvalue(), err.getvalue())
