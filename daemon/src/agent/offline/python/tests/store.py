"""Tests of the store and of the command line around it."""

import json
import os
import subprocess
import sys
import threading
import unittest.mock
from pathlib import Path

from @PKG@.store import Store, ToolError, clean, default_path, describe, find
from @PKG@.testing import ToolCase


class StoreTest(ToolCase):
    def test_a_missing_file_is_an_empty_store(self):
        self.assertEqual(self.store.items(), [])
        self.assertFalse(self.path.exists())

    def test_what_is_saved_is_read_back(self):
        self.fill("first @ENTITY@", "café ☕ 日本語")
        self.assertEqual(self.texts(), ["first @ENTITY@", "café ☕ 日本語"])
        self.assertIn("café ☕ 日本語", self.path.read_text(encoding="utf-8"))

    def test_an_error_during_a_change_saves_nothing(self):
        self.fill("first @ENTITY@")
        with self.assertRaises(ToolError):
            with self.store.change() as document:
                document["items"].clear()
                raise ToolError("no")
        self.assertEqual(self.texts(), ["first @ENTITY@"])

    def test_a_failed_replace_keeps_the_old_file_and_leaves_nothing_behind(self):
        self.fill("first @ENTITY@")
        with unittest.mock.patch("os.replace", side_effect=OSError(28, "No space left on device")):
            with self.assertRaisesRegex(ToolError, "No space left"):
                self.fill("second @ENTITY@")
        self.assertEqual(self.texts(), ["first @ENTITY@"])
        self.assertEqual([path.name for path in self.folder.iterdir()], [self.path.name])

    def test_a_corrupt_file_is_an_error_and_is_left_alone(self):
        for raw in ("{", "[]", '{"version": 2}', '{"version": 1, "next_id": 1, "items": [{"id": 1}]}', "\udcff"):
            self.path.write_bytes(raw.encode("utf-8", "surrogateescape"))
            before = self.path.read_bytes()
            with self.assertRaisesRegex(ToolError, "is not a @PLURAL@ store"):
                self.store.items()
            with self.assertRaises(ToolError):
                with self.store.change():
                    pass
            self.assertEqual(self.path.read_bytes(), before)

    def test_writers_at_the_same_time_lose_nothing(self):
        def work():
            with Store(self.path).change() as document:
                document["items"].append({"id": document["next_id"], "text": "x"})
                document["next_id"] += 1

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(item["id"] for item in self.store.items()), list(range(1, 9)))

    def test_the_path_comes_from_the_environment(self):
        with unittest.mock.patch.dict(os.environ, {"@ENV@": str(self.path)}):
            self.assertEqual(default_path(), self.path)
        with unittest.mock.patch.dict(os.environ, {"@ENV@": "", "HOME": str(self.folder)}):
            self.assertEqual(default_path().name, ".@PKG@.json")


class ItemTest(ToolCase):
    def test_text_is_put_on_one_line(self):
        self.assertEqual(clean("  two\n words "), "two words")
        self.assertEqual(clean("e\u0301"), "é")

    def test_empty_and_undecodable_text_is_refused(self):
        for text in ("", " \t\n", "\udcff"):
            with self.assertRaises(ToolError):
                clean(text)

    def test_a_line_shows_number_text_state_and_tags(self):
        self.assertEqual(describe({"id": 7, "text": "x"}), "7. x")
        self.assertEqual(describe({"id": 7, "text": "x", "done": True, "tags": ["a", "b"]}), "7. x (done) #a #b")

    def test_a_number_that_is_not_there_is_an_error(self):
        self.fill("first @ENTITY@")
        self.assertEqual(find(self.store.load(), 1)["text"], "first @ENTITY@")
        with self.assertRaisesRegex(ToolError, "there is no @ENTITY@ 2"):
            find(self.store.load(), 2)


class CommandLineTest(ToolCase):
    def test_help_names_the_tool_and_its_file(self):
        result = self.tool("--help")
        self.assertEqual(result.code, 0)
        self.assertIn("usage: @PKG@", result.out)
        self.assertIn("$@ENV@", result.out)

    def test_an_unknown_command_is_wrong_usage(self):
        result = self.tool("no-such-command")
        self.assertEqual(result.code, 2)
        self.assertIn("usage: @PKG@", result.err)
        self.assertEqual(self.tool().code, 2)

    def test_it_runs_as_a_program(self):
        root = Path(__file__).resolve().parent.parent
        done = subprocess.run([sys.executable, "-m", "@PKG@", "--version"], cwd=root, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout.split()[0]), (0, "@PKG@"))

    def test_the_file_is_json(self):
        self.fill("first @ENTITY@")
        self.assertEqual(json.loads(self.path.read_text(encoding="utf-8"))["version"], 1)
