"""Tests of `@PKG@ @NAME@`."""

import json

from @PKG@.testing import ToolCase


class ExportTest(ToolCase):
    def test_it_prints_a_json_list(self):
        self.fill("first @ENTITY@", "日本語")
        result = self.tool("@NAME@")
        self.assertEqual(result.code, 0)
        self.assertEqual(json.loads(result.out), [{"id": 1, "text": "first @ENTITY@"}, {"id": 2, "text": "日本語"}])

    def test_it_writes_a_file(self):
        self.fill("first @ENTITY@")
        target = self.folder / "out.json"
        self.assertEqual(self.tool("@NAME@", str(target)).code, 0)
        self.assertEqual(json.loads(target.read_text(encoding="utf-8"))[0]["text"], "first @ENTITY@")

    def test_it_does_not_overwrite(self):
        target = self.folder / "out.json"
        target.write_text("mine", encoding="utf-8")
        result = self.tool("@NAME@", str(target))
        self.assertEqual(result.code, 1)
        self.assertIn("cannot write", result.err)
        self.assertEqual(target.read_text(encoding="utf-8"), "mine")
