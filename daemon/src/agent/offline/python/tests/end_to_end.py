"""Runs the tool as a user does: one process for each command, one file for all of them."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from @PKG@ import __version__

ROOT = Path(__file__).resolve().parent.parent


class EndToEndTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = self.folder / "@PKG@.json"

    def tool(self, *arguments, code=0):
        environment = {**os.environ, "@ENV@": str(self.path), "PYTHONIOENCODING": "utf-8"}
        done = subprocess.run(
            [sys.executable, "-m", "@PKG@", *arguments],
            cwd=ROOT, env=environment, capture_output=True, encoding="utf-8",
        )
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def test_help_lists_every_command(self):
        shown = self.tool("--help")
        for name in (@NAMES@):
            self.assertRegex(shown, rf"(?m)^ +{name}\b")
            self.assertIn(f"usage: @PKG@ {name}", self.tool(name, "--help"))

    def test_version(self):
        self.assertEqual(self.tool("--version").strip(), f"@PKG@ {__version__}")

    def test_a_session(self):
@SESSION@
    def test_a_corrupt_file_is_reported_and_kept(self):
        self.path.write_text("not json", encoding="utf-8")
        self.tool(@PROBE@, code=1)
        self.assertEqual(self.path.read_text(encoding="utf-8"), "not json")
