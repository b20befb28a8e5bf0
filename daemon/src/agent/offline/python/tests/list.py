"""Tests of `@PKG@ @NAME@`."""

from @PKG@.testing import ToolCase


class ListTest(ToolCase):
    def test_an_empty_store_says_so(self):
        result = self.tool("@NAME@")
        self.assertEqual((result.code, result.out), (0, "There are no @PLURAL@ yet.\n"))

    def test_it_shows_every_item_in_order(self):
        self.fill("first @ENTITY@", "zweiter Eintrag ü")
        result = self.tool("@NAME@")
        self.assertEqual((result.code, result.out), (0, "1. first @ENTITY@\n2. zweiter Eintrag ü\n"))

    def test_a_corrupt_store_is_an_error(self):
        self.path.write_text("{", encoding="utf-8")
        result = self.tool("@NAME@")
        self.assertEqual((result.code, result.out), (1, ""))
        self.assertIn("is not a @PLURAL@ store", result.err)
