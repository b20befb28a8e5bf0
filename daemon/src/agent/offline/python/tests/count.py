"""Tests of `@PKG@ @NAME@`."""

from @PKG@.testing import ToolCase


class CountTest(ToolCase):
    def test_an_empty_store_has_none(self):
        self.assertEqual(self.tool("@NAME@")[:2], (0, "0\n"))

    def test_it_counts_what_is_there(self):
        self.fill("first @ENTITY@", "second @ENTITY@", "third @ENTITY@")
        self.assertEqual(self.tool("@NAME@")[:2], (0, "3\n"))
