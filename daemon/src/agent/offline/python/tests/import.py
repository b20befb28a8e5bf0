"""Tests of `@PKG@ @NAME@`."""

import json

from @PKG@.testing import ToolCase


class ImportTest(ToolCase):
    def give(self, content):
        source = self.folder / "in.json"
        source.write_text(content, encoding="utf-8")
        return self.tool("@NAME@", str(source))

    def test_it_adds_with_new_numbers(self):
        self.fill("first @ENTITY@")
        result = self.give(json.dumps([{"id": 1, "text": "second @ENTITY@", "tags": ["a"]}, "日本語"]))
        self.assertEqual(result.code, 0, result.err)
        self.assertEqual([item["id"] for item in self.store.items()], [1, 2, 3])
        self.assertEqual(self.texts(), ["first @ENTITY@", "second @ENTITY@", "日本語"])
        self.assertEqual(self.store.items()[1]["tags"], ["a"])

    def test_one_bad_entry_refuses_the_whole_file(self):
        for content in ('["good", 5]', '["good", ""]', '{"a": 1}', "{", '[{"text": "x", "tags": 3}]'):
            result = self.give(content)
            self.assertEqual(result.code, 1, content)
            self.assertTrue(result.err.startswith("@PKG@: error: "), result.err)
            self.assertFalse(self.path.exists())

    def test_a_missing_file_is_an_error(self):
        result = self.tool("@NAME@", str(self.folder / "absent.json"))
        self.assertEqual(result.code, 1)
        self.assertIn("cannot read", result.err)
